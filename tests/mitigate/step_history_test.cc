#include "backend/mitigate/step_history.h"

#include <gtest/gtest.h>

namespace straggler {
namespace {

class StepHistoryTest : public testing::Test {
 protected:
  void steps(std::uint64_t count, bool atBound, const std::string& exact = "", const std::string& rooted = "") {
    for (std::uint64_t step = 0; step < count; ++step) {
      history.exact(exact);
      history.rooted(rooted);
      history.step(atBound);
    }
  }

  StepHistory history;
};

TEST_F(StepHistoryTest, anExactOperationInEachStepIsFound) {
  steps(StepHistory::kMinimum, false, "an all_reduce of 1 element");
  EXPECT_EQ(history.exactInEveryStep(), "an all_reduce of 1 element");
  EXPECT_EQ(history.rootedInEveryStep(), std::nullopt);
}

TEST_F(StepHistoryTest, aBroadcastFromThisRankInEachStepIsFound) {
  steps(StepHistory::kMinimum, false, "", "a broadcast of 32 elements");
  EXPECT_EQ(history.rootedInEveryStep(), "a broadcast of 32 elements");
  EXPECT_EQ(history.exactInEveryStep(), std::nullopt);
}

TEST_F(StepHistoryTest, oneNowAndThenIsNone) {
  for (int round = 0; round < 10; ++round) {
    steps(9, false);
    steps(1, false, "a barrier");
  }
  EXPECT_EQ(history.exactInEveryStep(), std::nullopt);
}

TEST_F(StepHistoryTest, itIsForgottenWhenTheProgramChanges) {
  steps(StepHistory::kSteps, false, "a barrier");
  steps(StepHistory::kSteps, false);
  EXPECT_EQ(history.exactInEveryStep(), std::nullopt);
}

TEST_F(StepHistoryTest, ofAFewStepsNothingIsSaid) {
  steps(StepHistory::kMinimum - 1, false, "a barrier");
  EXPECT_EQ(history.exactInEveryStep(), std::nullopt);
}

TEST_F(StepHistoryTest, aRankThatIsNotAtTheBoundIsLate) {
  steps(1000, false);
  EXPECT_FALSE(history.isPersistent());
}

TEST_F(StepHistoryTest, aRankAtTheBoundForMostStepsIsPersistent) {
  steps(23, true);
  EXPECT_FALSE(history.isPersistent());
  steps(1, true);
  EXPECT_TRUE(history.isPersistent());
}

TEST_F(StepHistoryTest, aPersistentRankIsLeftAloneForTwiceAsLongEachTime) {
  steps(24, true);
  steps(StepHistory::kLeftAlone - 1, false);
  EXPECT_TRUE(history.isPersistent());
  steps(1, false);
  EXPECT_FALSE(history.isPersistent());
  steps(24, true);
  steps(2 * StepHistory::kLeftAlone - 1, false);
  EXPECT_TRUE(history.isPersistent());
  steps(1, false);
  EXPECT_FALSE(history.isPersistent());
}

}  // namespace
}  // namespace straggler
