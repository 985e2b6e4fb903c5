#include "backend/detect/arrival_pattern.h"

#include <random>

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"

namespace straggler {
namespace {

const OpKey kKey{1, 20, OpKind::kAllReduce};

TEST(ArrivalPattern, latenessCountsFromTheFirstArriver) {
  const auto pattern = arrivalPattern(kKey, {{0, at(12), {}}, {1, at(10), {}}, {2, at(18), {}}});
  EXPECT_EQ(pattern.key, kKey);
  EXPECT_EQ(pattern.skew, ms(8));
  EXPECT_EQ(pattern.lastArriver, 2);
  ASSERT_EQ(pattern.lateness.size(), 3U);
  EXPECT_EQ(pattern.lateness[0].lateness, ms(2));
  EXPECT_EQ(pattern.lateness[1].lateness, ms(0));
  EXPECT_EQ(pattern.lateness[2].lateness, ms(8));
  EXPECT_EQ(pattern.lateness[2].rank, 2);
}

TEST(ArrivalPattern, onOneClockTheBoundIsTheStampsOwn) {
  EXPECT_EQ(arrivalPattern(kKey, {{0, at(12), {}}, {1, at(10), {}}}).bound, kStampResolution);
}

TEST(ArrivalPattern, rankAloneHasNoSkew) {
  const auto pattern = arrivalPattern(kKey, {{5, at(12), {}}});
  EXPECT_EQ(pattern.skew, Duration{0});
  EXPECT_EQ(pattern.lastArriver, 5);
}

TEST(ArrivalPattern, boundHoldsThoughAnotherRankMayReallyHaveBeenLast) {
  // Rank 1 is 1 ms before the last arriver, and known to 10 ms only: it may have come 9 ms after it.
  const auto pattern = arrivalPattern(kKey, {{0, at(0), {}}, {1, at(4), ms(10)}, {2, at(5), {}}});
  EXPECT_EQ(pattern.skew, ms(5));
  EXPECT_GE(pattern.skew + pattern.bound, ms(14));
}

TEST(ArrivalPattern, lastArriverIsCertainOnlyIfNoOtherCanHaveBeenLaterByTheBounds) {
  EXPECT_TRUE(arrivalPattern(kKey, {{0, at(0), {}}, {1, at(5), {}}}).lastIsCertain);
  EXPECT_FALSE(arrivalPattern(kKey, {{0, at(0), {}}, {1, at(5), ms(6), 1}}).lastIsCertain);
  EXPECT_FALSE(arrivalPattern(kKey, {{0, at(0), ms(4), 1}, {1, at(5), ms(2), 2}}).lastIsCertain);
  EXPECT_TRUE(arrivalPattern(kKey, {{0, at(0), ms(2), 1}, {1, at(5), ms(2), 2}}).lastIsCertain);
}

TEST(ArrivalPattern, ranksOfOneForeignClockAreOffByTheSameSoWhoWasLaterIsCertain) {
  EXPECT_TRUE(arrivalPattern(kKey, {{0, at(0), {}}, {1, at(20), ms(9), 1}, {2, at(20.5), ms(9), 1}}).lastIsCertain);
}

TEST(ArrivalPattern, trueSkewIsAlwaysWithinTheBound) {
  std::mt19937 random(7);
  const auto milliseconds = [&random](double limit) {
    return std::uniform_real_distribution<double>(0, limit)(random);
  };
  for (int round = 0; round < 1000; ++round) {
    std::vector<RankArrival> arrivals;
    Instant first = Instant::max();
    Instant last = Instant::min();
    for (int rank = 0; rank < 6; ++rank) {
      const double bound = rank % 2 == 0 ? 0 : milliseconds(5);
      const double truth = milliseconds(10);
      first = std::min(first, at(truth));
      last = std::max(last, at(truth));
      arrivals.push_back({rank, at(truth - bound + milliseconds(2 * bound)), ms(bound)});
    }
    const auto pattern = arrivalPattern(kKey, arrivals);
    ASSERT_LE(std::abs((pattern.skew - (last - first)).count()), pattern.bound.count()) << "round " << round;
  }
}

}  // namespace
}  // namespace straggler
