#include "backend/detect/synthetic_run.h"

#include <cmath>

#include <gtest/gtest.h>

#include "backend/detect/rescore.h"

namespace straggler {
namespace {

std::vector<Frame> framesOf(const SyntheticSpec& spec) {
  SyntheticRun run(spec);
  std::vector<Frame> all;
  while (auto frames = run.next()) {
    for (auto& frame : *frames) {
      all.push_back(std::move(frame));
    }
  }
  return all;
}

std::vector<StepWindow> windowsOf(const SyntheticSpec& spec, int rank) {
  std::vector<StepWindow> windows;
  for (const auto& frame : framesOf(spec)) {
    const auto* window = std::get_if<StepWindow>(&frame.messages.front());
    if (frame.rank == rank && window != nullptr) {
      windows.push_back(*window);
    }
  }
  return windows;
}

Rescore judged(const std::string& text) {
  const SyntheticSpec spec = parseSynthetic(text);
  SyntheticRun run(spec);
  const int steps = static_cast<int>(spec.steps);
  Rescore rescore(run.members(), {.recordedSteps = steps, .steps = steps, .detector = {}});
  while (const auto frames = run.next()) {
    for (const auto& frame : *frames) {
      rescore.apply(frame);
    }
  }
  rescore.finish();
  return rescore;
}

std::string errorOf(const std::string& text) {
  try {
    SyntheticRun run(parseSynthetic(text));
  } catch (const FieldError& error) {
    return error.what();
  }
  return "";
}

TEST(SyntheticRun, sameSeedGivesTheSameWindowsAndAnotherOthers) {
  SyntheticSpec spec{.pauseShare = 0.1};
  spec.spreadMs = spec.slowMs = 0.5;
  const auto first = framesOf(spec);
  EXPECT_EQ(framesOf(spec), first);
  spec.seed = 2;
  EXPECT_NE(framesOf(spec), first);
}

TEST(SyntheticRun, everyRankTellsWhoItIsThenItsWindowsThenItsEnd) {
  const auto frames = framesOf({.ranks = 3, .windows = 2});
  ASSERT_EQ(frames.size(), 3U * (1 + 2 + 1));
  EXPECT_TRUE(std::holds_alternative<RankHello>(frames[0].messages.front()));
  EXPECT_EQ(std::get<GroupInfo>(frames[0].messages.back()).ranks, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(std::get<StepWindow>(frames[8].messages.front()).firstStep, 10);
  EXPECT_TRUE(std::get<RankCounters>(frames[9].messages.front()).final);
}

TEST(SyntheticRun, withoutNoiseWindowsAreExact) {
  const auto windows = windowsOf(
      {.ranks = 2, .windows = 3, .noiseMs = 0, .delay = Delay::kD3, .delayMs = 2, .rank = 1, .fromStep = 15}, 1);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows[1].selfUs[4], 30'000U);
  EXPECT_EQ(windows[1].selfUs[5], 32'000U) << "step 15";
  EXPECT_EQ(windows[1].inputUs, 10'000U) << "five steps of 2 ms";
  EXPECT_EQ(windows[1].durationUs, 320'000U) << "all wait for the slowest, 1 ms of transfer";
  EXPECT_EQ(windows[2].cpuUs, std::nullopt) << "not known, and not zero";
}

TEST(SyntheticRun, slowChangesFadeAsTheyAreDescribed) {
  const SyntheticSpec spec{.ranks = 2, .windows = 4000, .noiseMs = 0, .slowMs = 1, .slowWindows = 2};
  const auto windows = windowsOf(spec, 0);
  double product = 0;
  double square = 0;
  for (std::size_t i = 1; i < windows.size(); ++i) {
    const double before = windows[i - 1].selfUs[0] / 1e3 - 30;
    product += before * (windows[i].selfUs[0] / 1e3 - 30);
    square += before * before;
  }
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(windows.size())), 1, 0.1);
  EXPECT_NEAR(product / square, std::exp(-0.5), 0.05);
}

TEST(SyntheticRun, pausesAreAsOftenAndAsLongAsTheyAreDescribed) {
  const SyntheticSpec spec{.ranks = 2, .windows = 4000, .noiseMs = 0, .pauseShare = 0.05, .pauseMs = 4, .pauseTail = 2};
  double steps = 0;
  double pauses = 0;
  double twiceTheLeast = 0;
  for (const auto& window : windowsOf(spec, 1)) {
    for (const auto us : window.selfUs) {
      const double pause = us / 1e3 - 30;
      EXPECT_TRUE(std::abs(pause) < 0.002 || pause > 3.99) << pause;
      steps += 1;
      pauses += pause > 1 ? 1 : 0;
      twiceTheLeast += pause > 8 ? 1 : 0;
    }
  }
  EXPECT_NEAR(pauses / steps, 0.05, 0.005);
  EXPECT_NEAR(twiceTheLeast / pauses, 0.25, 0.04) << "(4 / 8)^2";
}

// ---- The delay models, through the detector ----

TEST(SyntheticRun, steadyDelayNamesItsRank) {
  const Rescore rescore = judged("delay=D1,ms=4,rank=2");
  const Verdict& verdict = rescore.model().verdict();
  EXPECT_EQ(verdict.ranks, std::vector<int>{2});
  EXPECT_NEAR(*verdict.excessMs, 4, 0.5);
  EXPECT_NEAR(static_cast<double>(*verdict.sinceStep), 100, 2);
  EXPECT_EQ(rescore.events().size(), 1U);
}

TEST(SyntheticRun, delayOfInputIsFoundInInput) {
  EXPECT_EQ(judged("delay=D3,ms=4,rank=1").model().verdict().cause, "host_input");
  EXPECT_EQ(judged("delay=D1,ms=4,rank=1").model().verdict().cause, "not_attributed");
}

TEST(SyntheticRun, whatIsNoStragglersNamesNobody) {
  for (const char* delay : {"none", "D6", "D9"}) {
    for (const char* noise : {"", ",spread_ms=0.2,slow_ms=0.2,pause_share=0.02"}) {
      const Rescore rescore = judged(std::string("windows=200,delay=") + delay + noise);
      EXPECT_EQ(rescore.model().verdict().kind, VerdictKind::kNone) << delay << noise;
      EXPECT_TRUE(rescore.events().empty()) << delay << noise;
    }
  }
}

TEST(SyntheticRun, everybodySlowerIsJobWide) {
  EXPECT_EQ(judged("delay=D7").model().verdict().kind, VerdictKind::kJobWide);
}

TEST(SyntheticRun, delayThatRotatesIsAnImbalance) {
  EXPECT_EQ(judged("delay=D8,ms=8").model().verdict().kind, VerdictKind::kImbalance);
}

TEST(SyntheticRun, oneOf8192RanksIsNamed) {
  const Rescore rescore = judged("ranks=8192,windows=8,delay=D1,ms=4,rank=5000,from_step=30");
  EXPECT_EQ(rescore.model().verdict().ranks, std::vector<int>{5000});
}

// ---- The description ----

TEST(SyntheticRun, descriptionCanBeSaidAgain) {
  const SyntheticSpec spec = parseSynthetic("ranks=8192,windows=50,delay=D1,ms=2,pause_share=0.001");
  EXPECT_EQ(spec.ranks, 8192);
  EXPECT_EQ(spec.delay, Delay::kD1);
  EXPECT_EQ(spec.delayMs, 2);
  EXPECT_EQ(toText(parseSynthetic(toText(spec))), toText(spec));
  EXPECT_EQ(parseSynthetic("ms=3", spec).ranks, 8192) << "what is not said stays";
}

TEST(SyntheticRun, whatIsNotAllowedIsRefusedWithWhatIs) {
  EXPECT_EQ(errorOf("ranks=1"), "ranks=1 is not valid; allowed: a whole number from 2 to 65536");
  EXPECT_EQ(errorOf("delay=D2"), "delay=D2 is not valid; allowed: none, D1, D3, D6, D7, D8, or D9");
  EXPECT_EQ(errorOf("pause_share=2"), "pause_share=2 is not valid; allowed: a number from 0 to 1");
  EXPECT_EQ(errorOf("ranks"), "'ranks' is not valid; allowed: name=value, separated by commas");
  EXPECT_EQ(errorOf("rank=4"), "rank=4 is not valid; allowed: a rank of the job, below 4");
  EXPECT_EQ(errorOf("windows=5,delay=D1"), "from_step=100 is not valid; allowed: a step of the job, below 50");
  EXPECT_NE(errorOf("colour=1").find("'colour' is not known; known are ranks, windows,"), std::string::npos);
}

}  // namespace
}  // namespace straggler
