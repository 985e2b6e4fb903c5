#include "backend/detect/step_table.h"

#include <gtest/gtest.h>

namespace straggler {
namespace {

TEST(StepTable, stepIsCompleteWhenEveryRankToldOfIt) {
  StepTable table(3);
  EXPECT_FALSE(table.add(0, 7, 20, 30));
  EXPECT_FALSE(table.add(2, 7, 22, 30.5));
  const auto complete = table.add(1, 7, 21, 31);
  ASSERT_TRUE(complete);
  EXPECT_EQ(complete->step, 7);
  EXPECT_EQ(complete->selfMs, (std::vector<double>{20, 21, 22}));
  EXPECT_EQ(complete->durationMs, (std::vector<double>{30, 31, 30.5}));
}

TEST(StepTable, rankThatTellsTwiceCountsOnce) {
  StepTable table(2);
  EXPECT_FALSE(table.add(0, 7, 20, 30));
  EXPECT_FALSE(table.add(0, 7, 99, 99));
  const auto complete = table.add(1, 7, 21, 30);
  ASSERT_TRUE(complete);
  EXPECT_EQ(complete->selfMs.front(), 20);
}

TEST(StepTable, ranksMayBeAnyNumberOfStepsApartWithinTheBound) {
  StepTable table(2);
  for (std::int64_t step = 0; step < 1000; ++step) {
    EXPECT_FALSE(table.add(0, step, 1, 1));
  }
  for (std::int64_t step = 0; step < 1000; ++step) {
    EXPECT_TRUE(table.add(1, step, 1, 1));
  }
  EXPECT_EQ(table.givenUp(), 0U);
}

TEST(StepTable, stepsThatWaitForARankTooLongAreGivenUpOldestFirst) {
  StepTable table(2);
  const std::int64_t kept = 1 << 14;
  for (std::int64_t step = 0; step < kept + 10; ++step) {
    table.add(0, step, 1, 1);
  }
  EXPECT_EQ(table.givenUp(), 10U);
  EXPECT_TRUE(table.add(1, 10, 1, 1));
  EXPECT_FALSE(table.add(1, 9, 1, 1)) << "given up";
}

TEST(StepTable, manyRanksLeaveRoomForFewerSteps) {
  StepTable table(1 << 15);
  for (std::int64_t step = 0; step < 70; ++step) {
    table.add(0, step, 1, 1);
  }
  EXPECT_EQ(table.givenUp(), 6U);
}

}  // namespace
}  // namespace straggler
