#include "backend/mitigate/step_history.h"

#include <gtest/gtest.h>

#include "tests/fakes/slot_operations.h"

namespace straggler {
namespace {

constexpr std::uint64_t kStaleness = 8;

class StepHistoryTest : public testing::Test {
 protected:
  void steps(std::uint64_t count, std::uint64_t unread, const std::vector<SlotOperation>& rest = {}) {
    for (std::uint64_t step = 0; step < count; ++step) {
      history.arrived(bucketOf(0), {{0, unread}}, kStaleness);
      for (const auto& operation : rest) {
        history.arrived(operation, {{0, unread}}, kStaleness);
      }
    }
  }

  StepHistory history;
};

TEST_F(StepHistoryTest, anExactOperationInEachStepIsFound) {
  steps(StepHistory::kMinimum, 0, {bucketOf(1), exactOf()});
  EXPECT_EQ(history.exactInEveryStep(), exactOf());
}

TEST_F(StepHistoryTest, oneNowAndThenIsNone) {
  for (int round = 0; round < 10; ++round) {
    steps(9, 0, {bucketOf(1), broadcastFrom(0)});
    steps(1, 0, {bucketOf(1), barrierOf()});
  }
  EXPECT_EQ(history.exactInEveryStep(), std::nullopt);
}

TEST_F(StepHistoryTest, itIsForgottenWhenTheProgramChanges) {
  steps(StepHistory::kSteps, 0, {exactOf()});
  steps(StepHistory::kSteps, 0);
  EXPECT_EQ(history.exactInEveryStep(), std::nullopt);
}

TEST_F(StepHistoryTest, ofAFewStepsNothingIsSaid) {
  steps(StepHistory::kMinimum - 1, 0, {exactOf()});
  EXPECT_EQ(history.exactInEveryStep(), std::nullopt);
}

TEST_F(StepHistoryTest, aRankThatIsBehindButNotAtTheBoundIsLate) {
  steps(1000, kStaleness - 1);
  EXPECT_FALSE(history.isPersistent());
}

TEST_F(StepHistoryTest, aRankAtTheBoundForMostStepsIsPersistent) {
  steps(23, kStaleness);
  EXPECT_FALSE(history.isPersistent());
  steps(1, kStaleness);
  EXPECT_TRUE(history.isPersistent());
}

TEST_F(StepHistoryTest, aPersistentRankIsLeftAloneForTwiceAsLongEachTime) {
  steps(24, kStaleness);
  steps(StepHistory::kLeftAlone - 1, 0);
  EXPECT_TRUE(history.isPersistent());
  steps(1, 0);
  EXPECT_FALSE(history.isPersistent());
  steps(24, kStaleness);
  steps(2 * StepHistory::kLeftAlone - 1, 0);
  EXPECT_TRUE(history.isPersistent());
  steps(1, 0);
  EXPECT_FALSE(history.isPersistent());
}

}  // namespace
}  // namespace straggler
