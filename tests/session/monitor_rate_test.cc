// How much a rank tells, and that ranks which tell at different rates tell of the same steps and operations.
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "backend/session/monitor.h"
#include "tests/fakes/simulated_rank.h"

namespace straggler {
namespace {

TEST(Thinning, isTheSmallestPowerOfTwoThatIsEnough) {
  EXPECT_EQ(thinning(0, 64), 1U);
  EXPECT_EQ(thinning(64, 64), 1U);
  EXPECT_EQ(thinning(65, 64), 2U);
  EXPECT_EQ(thinning(1000, 64), 16U);
  EXPECT_EQ(thinning(1e12, 1), 1U << 20U) << "and it has a limit";
}

TEST(IsSampled, sparserSampleIsPartOfTheDenser) {
  for (std::uint64_t sequence = 0; sequence < 10'000; ++sequence) {
    const OpKey key{groupId("world"), sequence, OpKind::kAllReduce};
    EXPECT_TRUE(isSampled(key, 1));
    for (std::uint32_t sampling = 2; sampling <= 1024; sampling *= 2) {
      EXPECT_LE(isSampled(key, sampling), isSampled(key, sampling / 2));
    }
  }
}

TEST(IsSampled, takesTheShareThatItSaysAndFollowsNoPattern) {
  int taken = 0;
  for (std::uint64_t sequence = 0; sequence < 64'000; sequence += 4) {  // the first bucket of every step
    taken += isSampled({groupId("world"), sequence, OpKind::kAllReduce}, 16) ? 1 : 0;
  }
  EXPECT_NEAR(taken, 1000, 150);
}

TEST(MonitorRate, staysBelowAKilobyteASecond) {
  for (const double stepMs : {5.0, 16.7, 30.0, 100.0}) {
    for (const int buckets : {1, 2, 4, 20}) {
      Duration passed{};
      std::uint64_t windows = 0;
      // 100 ms and 100 KB a window of whatever is a time or bytes, and 100 of what happens.
      SimulatedRank rank({.fetchMs = 0.2, .osTotals = [&passed, &windows](int) {
                            passed += std::chrono::milliseconds(300);
                            OsTotals totals{ThreadTimes{passed, passed}, {}};
                            ++windows;
                            for (const OsCounter counter : allOsCounters()) {
                              const bool large = isTime(counter) || totalField(counter).ends_with("bytes");
                              totals.counters[counter] = isState(counter) ? 100 : windows * (large ? 100'000 : 100);
                            }
                            return totals;
                          }});
      rank.recorder->setTrainingThread(1);
      rank.steps(static_cast<int>(60'000 / stepMs), stepMs, buckets);
      rank.finish();
      EXPECT_LT(static_cast<double>(rank.exchange->bytesSent) / 60, 1024.0)
          << buckets << " collectives in steps of " << stepMs << " ms";
      EXPECT_TRUE(rank.exchange->messages<StepWindow>().back().runDelayUs) << "evidence is told too";
      const auto told = rank.exchange->messages<StepWindow>();
      EXPECT_TRUE(std::any_of(told.begin(), told.end(),
                              [](const StepWindow& window) { return window.os[OsCounter::kReadBytes] == 100'000U; }));
    }
  }
}

TEST(MonitorRate, nothingIsToldOfAJobThatStandsStillButItsCounters) {
  SimulatedRank rank;
  rank.steps(20);
  rank.idle(1000);
  const std::size_t before = rank.exchange->bytesSent;
  rank.idle(60'000);
  EXPECT_LT(rank.exchange->bytesSent - before, 600U);
}

// Two ranks that made the same 4000 steps; the second did them four times as fast, so it tells less of them.
class TwoRates : public testing::Test {
 protected:
  TwoRates() {
    slow_.steps(4000, 30, 4);
    fast_.steps(4000, 7.5, 4);
    slow_.finish();
    fast_.finish();
  }
  static std::uint32_t lastSampling(const SimulatedRank& rank) {
    return rank.exchange->messages<ArrivalSamples>().back().sampling;
  }
  SimulatedRank slow_;
  SimulatedRank fast_;
};

TEST_F(TwoRates, stepsOfTheSparserAreAmongThoseOfTheDenser) {
  std::set<std::int64_t> dense;
  for (const auto& window : slow_.exchange->messages<StepWindow>()) {
    dense.insert(window.firstStep);
  }
  const auto sparse = fast_.exchange->messages<StepWindow>();
  EXPECT_LT(sparse.size(), dense.size());
  EXPECT_GT(sparse.size(), 100U);
  for (const auto& window : sparse) {
    EXPECT_TRUE(dense.contains(window.firstStep)) << window.firstStep;
  }
}

TEST_F(TwoRates, operationsOfTheSparserAreAmongThoseOfTheDenser) {
  const std::uint32_t sampling = lastSampling(fast_);
  EXPECT_GT(sampling, lastSampling(slow_));
  const auto keysOf = [&](const SimulatedRank& rank) {
    std::set<std::uint64_t> keys;
    for (const auto& samples : rank.exchange->messages<ArrivalSamples>()) {
      for (const auto& operation : samples.operations) {
        // Beyond the first steps, in which the rates are found.
        if (operation.key.sequence > 4000 && isSampled(operation.key, sampling)) {
          keys.insert(operation.key.sequence);
        }
      }
    }
    return keys;
  };
  EXPECT_EQ(keysOf(fast_), keysOf(slow_));
  EXPECT_GT(keysOf(fast_).size(), 500U);
}

}  // namespace
}  // namespace straggler
