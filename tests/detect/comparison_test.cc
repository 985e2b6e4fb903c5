#include "backend/detect/comparison.h"

#include <cmath>

#include <gtest/gtest.h>

namespace straggler {
namespace {

RankWindow window(std::vector<double> selfMs, double stepMs = 30) { return {std::move(selfMs), stepMs}; }

WindowRow row(std::vector<std::optional<RankWindow>> ranks) {
  WindowRow made{40, std::move(ranks), 0};
  for (const auto& rank : made.ranks) {
    made.told += rank ? 1 : 0;
  }
  return made;
}

TEST(Comparison, excessIsWhatARankIsAboveTheMedianOfItsPeers) {
  const auto made =
      compare(row({window({25, 25, 25}), window({26, 26, 26}), window({33, 33, 33}), window({25, 25, 25})}));
  EXPECT_DOUBLE_EQ(made.ranks[0].excessMs, -1);
  EXPECT_DOUBLE_EQ(made.ranks[1].excessMs, 1);
  EXPECT_DOUBLE_EQ(made.ranks[2].excessMs, 8);
  EXPECT_DOUBLE_EQ(made.ranks[2].meanExcessMs, 8);
  EXPECT_DOUBLE_EQ(made.ranks[2].selfMs, 33);
  EXPECT_DOUBLE_EQ(made.spreadMs, 8);
  EXPECT_DOUBLE_EQ(made.stepMs, 30);
  EXPECT_EQ(made.ranks[2].timesLargest, 3U);
  EXPECT_EQ(made.lastStep(), 42);
}

TEST(Comparison, singleLateStepMovesTheMeanAndNotTheMedian) {
  const auto made = compare(row({window({25, 325, 25}), window({25, 25, 25})}));
  EXPECT_DOUBLE_EQ(made.ranks[0].excessMs, 0);
  EXPECT_DOUBLE_EQ(made.ranks[0].meanExcessMs, 100);
}

TEST(Comparison, rankThatToldNothingIsNeitherFastNorAPeer) {
  const auto made = compare(row({window({25}), std::nullopt, window({33})}));
  EXPECT_EQ(made.told, 2U);
  EXPECT_FALSE(made.ranks[1].told);
  EXPECT_TRUE(made.ranks[1].stepExcessMs.empty());
  EXPECT_DOUBLE_EQ(made.ranks[2].excessMs, 8);
}

TEST(Comparison, evidenceIsComparedAmongThoseThatMeasuredIt) {
  auto slow = window({33});
  slow.inputMs = 9;
  slow.cpuMs = 20;
  auto fast = window({25});
  fast.inputMs = 1;
  const auto made = compare(row({fast, slow, window({25}), fast}));
  EXPECT_DOUBLE_EQ(*made.ranks[1].inputMs, 8);
  EXPECT_EQ(made.ranks[1].cpuMs, std::nullopt) << "nobody to compare it with";
  EXPECT_EQ(made.ranks[2].inputMs, std::nullopt);
}

TEST(Comparison, whatTheSystemCountedStandsBesideTheMedianOfThePeersThatCountedItToo) {
  const auto with = [](double blockIoMs) {
    auto made = window({25});
    made.os.set(OsCounter::kBlockIo, blockIoMs);
    return made;
  };
  const auto made = compare(row({with(1), with(6), window({25}), with(0.5), with(2)}));
  EXPECT_EQ(made.ranks[1].os[OsCounter::kBlockIo], 6);
  EXPECT_EQ(made.ranks[1].osPeers[OsCounter::kBlockIo], 1) << "of 0.5, 1 and 2";
  EXPECT_TRUE(made.ranks[2].os.empty());
  EXPECT_TRUE(made.ranks[2].osPeers.empty());
  const auto alone = compare(row({with(6), window({25})}));
  EXPECT_EQ(alone.ranks[0].os[OsCounter::kBlockIo], 6);
  EXPECT_TRUE(alone.ranks[0].osPeers.empty()) << "nobody to compare it with";
}

TEST(Comparison, noiseIsThatOfTheMedianOfTheSteps) {
  // Excess of rank 0: -1 0 1 around its median 0, MAD 1.
  const auto made = compare(row({window({24, 25, 26}), window({25, 25, 25})}));
  EXPECT_NEAR(made.noiseMs, 1.2533 * 1.4826 / std::sqrt(3.0), 1e-9);
}

TEST(Comparison, windowWithoutStepsComparesNobody) {
  const auto made = compare(row({window({}), window({25})}));
  EXPECT_EQ(made.steps, 0U);
  EXPECT_EQ(made.ranks.size(), 2U);
}

TEST(Comparison, ranksWithFewerStepsAreComparedOverTheStepsThatAllHave) {
  EXPECT_EQ(compare(row({window({25, 25, 25}), window({25, 26})})).steps, 2U);
}

}  // namespace
}  // namespace straggler
