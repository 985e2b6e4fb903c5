#include "backend/detect/window_table.h"

#include <gtest/gtest.h>

namespace straggler {
namespace {

RankWindow window(double selfMs) { return {std::vector<double>(10, selfMs), 30}; }

class WindowTableTest : public testing::Test {
 protected:
  // Gives the first steps of the rows that are ready.
  std::vector<std::int64_t> tell(std::size_t rank, std::int64_t firstStep) {
    std::vector<std::int64_t> steps;
    rows_ = table_.add(rank, firstStep, window(static_cast<double>(rank)));
    for (const auto& row : rows_) {
      steps.push_back(row.firstStep);
    }
    return steps;
  }

  using Steps = std::vector<std::int64_t>;
  WindowTable table_{3, 10};
  std::vector<WindowRow> rows_;
};

TEST_F(WindowTableTest, rowIsReadyWhenEveryRankHasTold) {
  EXPECT_EQ(tell(0, 10), Steps{});
  EXPECT_EQ(tell(2, 10), Steps{});
  EXPECT_EQ(tell(1, 10), Steps{10});
  EXPECT_TRUE(rows_.front().complete());
  EXPECT_EQ(rows_.front().ranks[2]->selfMs.front(), 2);
}

TEST_F(WindowTableTest, rankThatTellsTwiceCountsOnce) {
  tell(0, 10);
  tell(0, 10);
  EXPECT_EQ(tell(1, 10), Steps{});
  EXPECT_EQ(tell(2, 10), Steps{10});
}

TEST_F(WindowTableTest, rowsBeforeACompleteOneArePassedOver) {
  tell(0, 10);
  tell(1, 10);
  tell(0, 20);
  tell(1, 20);
  EXPECT_EQ(tell(2, 20), Steps{20}) << "rank 2 left the first out";
  EXPECT_EQ(table_.passedOver(), 1U);
}

TEST_F(WindowTableTest, silentRankIsWaitedForEightWindowsAndThenMissing) {
  tell(0, 0);
  tell(1, 0);
  tell(2, 0);
  for (std::int64_t step = 10; step <= 90; step += 10) {
    tell(1, step);
    EXPECT_EQ(tell(0, step), Steps{}) << step;
  }
  EXPECT_EQ(tell(0, 100), Steps{10});
  EXPECT_FALSE(rows_.front().complete());
  EXPECT_FALSE(rows_.front().ranks[2]);
  EXPECT_EQ(rows_.front().told, 2U);
  EXPECT_EQ(table_.passedOver(), 0U);
}

TEST_F(WindowTableTest, rankThatComesBackIsComparedAgain) {
  for (std::int64_t step = 0; step <= 200; step += 10) {
    tell(0, step);
    tell(1, step);
  }
  EXPECT_EQ(tell(2, 200), Steps{200});
  EXPECT_TRUE(rows_.front().complete());
}

TEST_F(WindowTableTest, windowThatComesAfterItsRowIsLate) {
  for (std::int64_t step = 0; step <= 200; step += 10) {
    tell(0, step);
    tell(1, step);
  }
  EXPECT_EQ(tell(2, 20), Steps{});
  EXPECT_EQ(table_.late(), 1U);
}

TEST_F(WindowTableTest, ranksThatSendManyWindowsAtOnceAreWaitedForLonger) {
  table_.sentAtOnce(40);
  for (std::int64_t step = 0; step < 400; step += 10) {
    tell(0, step);
    EXPECT_EQ(tell(1, step), Steps{});
  }
  EXPECT_EQ(tell(2, 0), Steps{0});
}

TEST_F(WindowTableTest, waitingRowsAreBounded) {
  WindowTable table(1 << 15, 10);
  table.sentAtOnce(2000);
  for (std::int64_t step = 0; step < 300; step += 10) {
    table.add(0, step, window(1));
  }
  EXPECT_EQ(table.passedOver(), 30U - 16U);
}

}  // namespace
}  // namespace straggler
