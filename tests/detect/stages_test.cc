#include "backend/detect/stages.h"

#include <gtest/gtest.h>

namespace straggler {
namespace {

constexpr double kLimit = 11.5;  // ln(100,000)

// Windows until `uneven()` changes; -1: not within 100.
int windowsUntilChange(Stages& stages, const std::vector<StageLoad>& loads, std::int64_t firstStep = 0,
                       bool blamed = false) {
  for (int i = 1; i <= 100; ++i) {
    if (stages.add(loads, firstStep + 10 * (i - 1), blamed, kLimit)) {
      return i;
    }
  }
  return -1;
}

const std::vector<StageLoad> kExample = {{20, 50}, {30, 50}, {40, 50}, {50, 50}};
const std::vector<StageLoad> kEven = {{40, 50}, {41, 50}, {40, 50}, {39, 50}};

TEST(Stages, workedExampleOfItsHeader) {
  Stages stages;
  EXPECT_EQ(windowsUntilChange(stages, kExample, 100), 3);
  EXPECT_TRUE(stages.uneven());
  EXPECT_EQ(stages.limiting(), 3U);
  EXPECT_NEAR(stages.excessMs(), 15, 1e-9);
  EXPECT_NEAR(stages.limitingBusy(), 1, 1e-9);
  EXPECT_NEAR(stages.meanBusy(), 0.7, 1e-9);
  EXPECT_EQ(stages.sinceStep(), 100);
}

TEST(Stages, evenStagesAreNot) {
  Stages stages;
  EXPECT_EQ(windowsUntilChange(stages, kEven), -1);
}

TEST(Stages, isOverWhenTheWorkIsSpreadEvenly) {
  Stages stages;
  windowsUntilChange(stages, kExample);
  EXPECT_EQ(windowsUntilChange(stages, kEven), 3) << "each counts 10 / 3.5^2 * (3.75 - 0.5) = 2.7 of 6";
  EXPECT_FALSE(stages.uneven());
}

TEST(Stages, stageThatCountsInPartsOfAStepIsAsBusyAsItIs) {
  Stages stages;
  EXPECT_EQ(windowsUntilChange(stages, {{20, 50}, {30.0 / 8, 50.0 / 8}, {40.0 / 8, 50.0 / 8}, {50, 50}}), 3);
  EXPECT_NEAR(stages.excessMs(), 15, 1e-9);
}

TEST(Stages, stagesThatTakeTurnsAreNoStageImbalance) {
  Stages stages;
  for (std::size_t i = 0; i < 100; ++i) {
    std::vector<StageLoad> loads(4, {30, 50});
    loads[i % 4].selfMs = 50;
    EXPECT_FALSE(stages.add(loads, 0, false, kLimit));
  }
}

TEST(Stages, namedRankExplainsWhatThereIs) {
  Stages stages;
  windowsUntilChange(stages, kExample);
  EXPECT_EQ(windowsUntilChange(stages, kExample, 0, true), 1);
  EXPECT_FALSE(stages.uneven());
  EXPECT_EQ(windowsUntilChange(stages, kExample, 0, true), -1);
}

TEST(Stages, oneStageIsNoPipeline) {
  Stages stages;
  EXPECT_EQ(windowsUntilChange(stages, {{50, 50}}), -1);
}

}  // namespace
}  // namespace straggler
