// Windows that are made from the noise of others: do they have the same noise, as the detector measures it?
#include "backend/detect/noise_fit.h"

#include <gtest/gtest.h>

#include "tests/fakes/ranks.h"
#include "tests/fakes/recorded_run.h"

namespace straggler {
namespace {

NoiseFit fitted(const std::vector<Frame>& frames, int ranks) {
  NoiseFit fit(SyntheticJob{.ranks = ranks}.members(), 10);
  for (const auto& frame : frames) {
    fit.apply(frame);
  }
  return fit;
}

// Longer than what it was made from, and from other random numbers than the fit used.
RunNoise made(SyntheticSpec spec) {
  spec.windows = 900;
  spec.seed = 12345;
  return measure(spec);
}

NoiseFit fitted(const SyntheticJob& job) { return fitted(job.frames(), job.ranks); }

TEST(NoiseFit, windowsMadeFromARealRunHaveItsNoise) {
  const NoiseFit fit = fitted(recordedFrames(), 4);
  const RunNoise recorded = fit.measured().value();
  EXPECT_EQ(recorded.windows, 59U);
  const RunNoise again = made(fit.like().value());
  EXPECT_NEAR(again.withinMs, recorded.withinMs, 0.05 * recorded.withinMs);
  EXPECT_NEAR(again.totalMs, recorded.totalMs, 0.1 * recorded.totalMs);
  EXPECT_NEAR(again.betweenMs, recorded.betweenMs, 0.2 * recorded.betweenMs) << "known to a tenth from 59 windows";
  EXPECT_NEAR(again.baseMs, recorded.baseMs, 0.1);
  EXPECT_NEAR(again.transferMs, recorded.transferMs, 0.5);
  EXPECT_NEAR(again.pauseShare, recorded.pauseShare, 0.005);
}

// Noise that no normal distribution makes: bursts of ten windows, in which a rank is slower by as much as it is noisy.
TEST(NoiseFit, windowsMadeFromNoiseOfAnotherKindHaveAsMuch) {
  for (const int ranks : {2, 4, 16}) {
    SyntheticJob job{.ranks = ranks, .steps = 4000};
    job.selfMs = [](int rank, std::int64_t step) {
      return 30 + 0.8 * noise(rank, step) + (noise(rank + 100, step / 100) > 0.5 ? 0.8 : 0);
    };
    const NoiseFit fit = fitted(job);
    const RunNoise recorded = fit.measured().value();
    const RunNoise again = made(fit.like().value());
    EXPECT_NEAR(again.withinMs, recorded.withinMs, 0.1 * recorded.withinMs) << ranks;
    EXPECT_NEAR(again.totalMs, recorded.totalMs, 0.15 * recorded.totalMs) << ranks;
    EXPECT_NEAR(again.betweenMs, recorded.betweenMs, 0.15 * recorded.betweenMs) << ranks;
    EXPECT_GT(fit.like()->slowWindows, 2) << ranks << ": it was slow";
  }
}

TEST(NoiseFit, whatWasPutInIsFound) {
  SyntheticSpec spec{.ranks = 8, .windows = 900, .baseMs = 50, .transferMs = 3, .noiseMs = 1, .spreadMs = 2};
  spec.slowMs = 0.5;
  spec.slowWindows = 5;
  spec.pauseShare = 0.01;
  spec.pauseMs = 20;
  NoiseFit fit(SyntheticJob{.ranks = 8}.members(), 10);
  SyntheticRun run(spec);
  while (const auto frames = run.next()) {
    for (const auto& frame : *frames) {
      fit.apply(frame);
    }
  }
  const SyntheticSpec like = fit.like().value();
  EXPECT_NEAR(like.noiseMs, 1, 0.05);
  EXPECT_NEAR(like.slowMs, 0.5, 0.1);
  EXPECT_NEAR(like.slowWindows, 5, 2);
  EXPECT_NEAR(like.pauseShare, 0.01, 0.002);
  EXPECT_NEAR(like.spreadMs, 2, 1) << "of eight ranks";
  EXPECT_NEAR(like.baseMs, 50, 2) << "with their spread";
}

TEST(NoiseFit, nothingIsMadeOfTooFewWindowsOrOfARankAlone) {
  EXPECT_FALSE(fitted(SyntheticJob{.steps = 100}).like()) << "nine without the first";
  EXPECT_TRUE(fitted(SyntheticJob{.steps = 110}).like());
  EXPECT_FALSE(fitted(SyntheticJob{.ranks = 1}).like());
}

TEST(NoiseFit, windowsOfWhichARankIsMissingDoNotCount) {
  std::vector<Frame> frames = SyntheticJob{}.frames();
  std::erase_if(frames, [](const Frame& frame) {
    const auto* window = std::get_if<StepWindow>(&frame.messages.front());
    return frame.rank == 2 && window != nullptr && window->firstStep >= 200;
  });
  EXPECT_EQ(fitted(frames, 4).measured()->windows, 19U);
}

TEST(NoiseFit, noMoreIsKeptThanIsNeeded) {
  const auto windowsKept = [](std::int64_t ranks) {
    SyntheticSpec spec{.ranks = ranks, .windows = 80};
    return measure(spec).windows;
  };
  EXPECT_EQ(windowsKept(4), 79U);
  EXPECT_EQ(windowsKept(4096), 32U);
}

}  // namespace
}  // namespace straggler
