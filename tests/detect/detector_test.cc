// The rule itself, on blocks of excess. What whole jobs look like to it: job_verdict_test.cc.
#include "backend/detect/detector.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

namespace straggler {
namespace {

// `ranks` ranks with `blocks` blocks of ten steps; a step takes 38 ms, so the gate is at 1.9 ms.
DetectorInput input(int ranks, std::size_t blocks, const std::function<double(int, std::size_t)>& excessMs) {
  DetectorInput result;
  result.stepMs = 38;
  for (int rank = 0; rank < ranks; ++rank) {
    result.ranks.push_back({rank, {}});
    for (std::size_t block = 0; block < blocks; ++block) {
      result.ranks.back().blocksMs.push_back(excessMs(rank, block));
    }
  }
  for (std::size_t block = 0; block < blocks; ++block) {
    result.blockSteps.push_back(5 + 10 * static_cast<std::int64_t>(block));
  }
  return result;
}

auto oneLate(int culprit, double milliseconds) {
  return [=](int rank, std::size_t) { return rank == culprit ? milliseconds : -0.1; };
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Detector, workedExampleOfItsHeader) {
  const Verdict verdict = detect(input(4, 20, oneLate(2, 8.1)));
  EXPECT_EQ(verdict.kind, VerdictKind::kStraggler);
  EXPECT_EQ(verdict.ranks, std::vector<int>{2});
  EXPECT_DOUBLE_EQ(*verdict.excessMs, 8.1);
  EXPECT_NEAR(*verdict.share, 0.213, 0.001);
  EXPECT_EQ(verdict.sinceStep, 5);
  EXPECT_NEAR(*verdict.confidence, 1 - 4 * std::pow(0.5, 20), 1e-9);
  EXPECT_EQ(verdict.cause, "not_attributed");
  EXPECT_EQ(verdict.reason,
            "self time 8.10 ms a step above the median of its peers, more than 1.90 ms (5.0 % of the step) in 20 of 20 "
            "blocks of steps");
}

TEST(Detector, rankAloneIsNotJudged) {
  EXPECT_EQ(detect(input(1, 50, oneLate(0, 8))).kind, VerdictKind::kAbstain);
  EXPECT_EQ(detect({}).kind, VerdictKind::kAbstain);
}

TEST(Detector, abstainsBelowTheBlocksThatSignificanceNeeds) {
  const Verdict early = detect(input(4, 8, oneLate(2, 8)));
  EXPECT_EQ(early.kind, VerdictKind::kAbstain);
  EXPECT_EQ(early.reason, "80 steps were compared on all ranks; to name one of 4 it takes 90");
  EXPECT_EQ(early.excessMs, std::nullopt);
  EXPECT_EQ(detect(input(4, 9, oneLate(2, 8))).kind, VerdictKind::kStraggler);
}

TEST(Detector, moreRanksNeedMoreBlocks) {
  EXPECT_EQ(detect(input(8, 9, oneLate(2, 8))).kind, VerdictKind::kAbstain);
  EXPECT_EQ(detect(input(8, 10, oneLate(2, 8))).kind, VerdictKind::kStraggler);
}

TEST(Detector, excessBelowTheGateIsNotNamedButTold) {
  const Verdict verdict = detect(input(4, 50, oneLate(2, 1.8)));
  EXPECT_EQ(verdict.kind, VerdictKind::kNone);
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_DOUBLE_EQ(*verdict.excessMs, 1.8);
  EXPECT_TRUE(contains(verdict.reason, "rank 2's, 1.80 ms a step; below 1.90 ms")) << verdict.reason;
}

TEST(Detector, inShortStepsTheGateIsAbsolute) {
  DetectorInput shortSteps = input(4, 50, oneLate(2, 0.4));
  shortSteps.stepMs = 2;
  EXPECT_EQ(detect(shortSteps).kind, VerdictKind::kNone) << "20 % of the step, and nobody's concern";
}

TEST(Detector, someBlocksBelowTheGateDoNotClearARank) {
  const Verdict verdict =
      detect(input(4, 50, [](int rank, std::size_t block) { return rank == 2 && block % 10 != 3 ? 8.0 : 0.0; }));
  EXPECT_EQ(verdict.ranks, std::vector<int>{2});
}

TEST(Detector, rankThatIsLateInHalfOfTheBlocksIsNotPersistent) {
  EXPECT_EQ(
      detect(input(4, 50, [](int rank, std::size_t block) { return rank == 2 && block % 2 == 0 ? 8.0 : 0.0; })).kind,
      VerdictKind::kNone);
}

TEST(Detector, rankThatIsLateInTwoThirdsOfTheBlocksIsSignificantButNotPersistent) {
  EXPECT_EQ(
      detect(input(4, 300, [](int rank, std::size_t block) { return rank == 2 && block % 3 != 0 ? 8.0 : 0.0; })).kind,
      VerdictKind::kNone);
}

TEST(Detector, singleLateBlockIsNotPersistent) {
  EXPECT_EQ(
      detect(input(4, 50, [](int rank, std::size_t block) { return rank == 2 && block == 49 ? 800.0 : 0.0; })).kind,
      VerdictKind::kNone);
}

TEST(Detector, lateStartTellsSinceWhichStep) {
  const Verdict verdict =
      detect(input(4, 50, [](int rank, std::size_t block) { return rank == 3 && block >= 20 ? 8.0 : 0.0; }));
  EXPECT_EQ(verdict.ranks, std::vector<int>{3});
  EXPECT_EQ(verdict.sinceStep, 205);
  EXPECT_DOUBLE_EQ(*verdict.excessMs, 8) << "of the time since then";
}

TEST(Detector, rankThatRecoveredIsNotNamed) {
  EXPECT_EQ(detect(input(4, 50, [](int rank, std::size_t block) { return rank == 3 && block < 35 ? 8.0 : 0.0; })).kind,
            VerdictKind::kNone);
}

TEST(Detector, twoCulpritsAreBothNamedWorstFirst) {
  const Verdict verdict = detect(input(8, 50, [](int rank, std::size_t) {
    return rank == 1 ? 4.0 : rank == 6 ? 9.0 : 0.0;
  }));
  EXPECT_EQ(verdict.ranks, (std::vector<int>{6, 1}));
  EXPECT_DOUBLE_EQ(*verdict.excessMs, 9);
}

TEST(Detector, eightThousandRanksAreNoProblem) {
  const Verdict verdict = detect(input(8192, 40, oneLate(4711, 8)));
  EXPECT_EQ(verdict.ranks, std::vector<int>{4711});
}

TEST(Detector, everyKindHasAName) {
  EXPECT_EQ(toString(VerdictKind::kNone), "none");
  EXPECT_EQ(toString(VerdictKind::kStraggler), "straggler");
  EXPECT_EQ(toString(VerdictKind::kAbstain), "abstain");
}

}  // namespace
}  // namespace straggler
