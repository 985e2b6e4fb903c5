#include "backend/mitigate/grace.h"

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"

namespace straggler {
namespace {

class GraceTest : public testing::Test {
 protected:
  void wait(int times, double milliseconds) {
    for (int i = 0; i < times; ++i) {
      grace.waited(ms(milliseconds));
    }
  }
  double valueMs() const { return toMilliseconds(grace.value().value()); }

  Grace grace;
};

TEST_F(GraceTest, nothingIsKnownAtTheStart) {
  EXPECT_EQ(grace.value(), std::nullopt);
  grace.stepTakes(ms(30));
  wait(Grace::kMinimum - 1, 1);
  EXPECT_EQ(grace.value(), std::nullopt);
  wait(1, 1);
  EXPECT_TRUE(grace.value().has_value());
}

TEST_F(GraceTest, withoutAStepNothingIsKnown) {
  wait(100, 1);
  EXPECT_EQ(grace.value(), std::nullopt);
}

TEST_F(GraceTest, theExamplesOfTheHeader) {
  grace.stepTakes(ms(30));
  wait(99, 1.5);
  wait(1, 600);
  EXPECT_DOUBLE_EQ(valueMs(), 1.5 * 1.5);
  grace = Grace();
  grace.stepTakes(ms(30));
  wait(99, 1);
  wait(1, 9);
  EXPECT_DOUBLE_EQ(valueMs(), 30);
}

TEST_F(GraceTest, rankThatIsLateByAStepInEachStepIsNotWaitedFor) {
  grace.stepTakes(ms(40));
  wait(250, 40);
  wait(250, 1);
  EXPECT_LT(valueMs(), 3);
}

TEST_F(GraceTest, waitsOfAFifthOfAStepAreCheaperThanStaleness) {
  grace.stepTakes(ms(40));
  wait(450, 8);
  wait(50, 400);
  EXPECT_DOUBLE_EQ(valueMs(), 1.5 * 8);
}

TEST_F(GraceTest, waitsThatSpreadOverAStepAreNotWaitedFor) {
  grace.stepTakes(ms(40));
  for (int i = 0; i < 500; ++i) {
    wait(1, i % 50);
  }
  EXPECT_LT(valueMs(), 3);
}

TEST_F(GraceTest, itIsNeverShorterThanWhatAMachineStumblesBy) {
  grace.stepTakes(ms(30));
  wait(90, 0.01);
  wait(10, 600);
  EXPECT_EQ(grace.value(), Grace::kShortest);
}

TEST_F(GraceTest, whatIsLongAgoDoesNotCount) {
  grace.stepTakes(ms(30));
  wait(static_cast<int>(Grace::kKept), 600);
  wait(static_cast<int>(Grace::kKept), 1);
  EXPECT_DOUBLE_EQ(valueMs(), 30);
}

}  // namespace
}  // namespace straggler
