#include "backend/detect/clock_offset.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fakes/two_clocks.h"

namespace straggler {
namespace {

Crossing crossing(double arrivalQ, double completedQ, double arrivalR, double completedR) {
  return {at(arrivalQ), at(completedR), at(arrivalR), at(completedQ)};
}

bool contains(const OffsetInterval& interval, Duration truth) {
  return interval.lower <= truth && truth <= interval.upper;
}

// ---- By hand ----

TEST(ClockOffset, workedExampleOfItsHeader) {
  ClockOffset offset;
  offset.observe(crossing(100, 130, 5, 29));
  const auto first = offset.interval(at(29));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->lower, ms(71));
  EXPECT_EQ(first->upper, ms(125.024));
  offset.observe(crossing(1099, 1103, 1004, 1030));
  const auto second = offset.interval(at(1030));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->lower, ms(69.999));
  EXPECT_EQ(second->upper, ms(99.026));
}

TEST(ClockOffset, middleAndBoundAreOfTheInterval) {
  const OffsetInterval interval{ms(71), ms(125)};
  EXPECT_EQ(interval.middle(), ms(98));
  EXPECT_EQ(interval.bound(), ms(27));
}

TEST(ClockOffset, nothingIsKnownBeforeTheFirstOperation) {
  EXPECT_FALSE(ClockOffset().interval(at(0)));
  EXPECT_FALSE(ClockOffset().newest());
}

TEST(ClockOffset, isWiderAtOtherMomentsBeforeAndAfterByTheLimitOfDrift) {
  ClockOffset offset;
  offset.observe(crossing(100, 130, 29, 29));
  for (const double moment : {29.0 - 500, 29.0 + 500}) {
    const auto interval = offset.interval(at(moment));
    ASSERT_TRUE(interval);
    EXPECT_EQ(interval->lower, ms(71 - 0.5));
    EXPECT_EQ(interval->upper, ms(101 + 0.5));
  }
}

TEST(ClockOffset, operationToldLateCountsAtItsOwnMoment) {
  ClockOffset inOrder;
  inOrder.observe(crossing(100, 102, 9, 11));
  inOrder.observe(crossing(5100, 5190, 5009, 5099));
  ClockOffset late;
  late.observe(crossing(5100, 5190, 5009, 5099));
  late.observe(crossing(100, 102, 9, 11));
  EXPECT_EQ(inOrder.interval(at(5099))->lower, ms(89 - 5.088));
  EXPECT_EQ(inOrder.interval(at(5099))->lower, late.interval(at(5099))->lower);
  EXPECT_EQ(inOrder.interval(at(5099))->upper, late.interval(at(5099))->upper);
}

TEST(ClockOffset, smallestDriftThatIsNotZeroIsRoundedUp) {
  EXPECT_EQ(ClockOffset::drifted(Duration(0)), Duration(0));
  EXPECT_EQ(ClockOffset::drifted(Duration(1)), Duration(1));
  EXPECT_EQ(ClockOffset::drifted(Duration(1000)), Duration(1));
  EXPECT_EQ(ClockOffset::drifted(Duration(1001)), Duration(2));
}

TEST(ClockOffset, leapForgetsWhatWasKnownAndTheOperationInWhichItWasNoticed) {
  ClockOffset offset;
  offset.observe(crossing(100, 102, 9, 11));
  offset.observe(crossing(200, 202, 10109, 10111));  // the other clock is 10 s further
  EXPECT_EQ(offset.leaps(), 1U);
  EXPECT_FALSE(offset.interval(at(10111)));
  offset.observe(crossing(300, 302, 10209, 10211));
  EXPECT_EQ(offset.leaps(), 1U);
  ASSERT_TRUE(offset.interval(at(10211)));
  EXPECT_EQ(offset.interval(at(10211))->lower, ms(300 - 10211));
  EXPECT_FALSE(offset.interval(at(10110))) << "of the time before nothing is known any more";
}

TEST(ClockOffset, whatIsToldOfTheTimeBeforeALeapIsPassedOver) {
  ClockOffset offset;
  offset.observe(crossing(100, 102, 9, 11));
  offset.observe(crossing(200, 202, 10109, 10111));
  offset.observe(crossing(300, 302, 10209, 10211));
  const auto known = offset.interval(at(10211));
  offset.observe(crossing(150, 152, 59, 61));
  EXPECT_EQ(offset.leaps(), 1U);
  EXPECT_EQ(offset.interval(at(10211))->lower, known->lower);
}

TEST(ClockOffset, operationThatContradictsItselfIsALeapWithinIt) {
  ClockOffset offset;
  offset.observe(crossing(100, 102, 9, -5000));
  EXPECT_EQ(offset.leaps(), 1U);
  EXPECT_FALSE(offset.interval(at(9)));
}

// ---- Against the truth ----

struct Case {
  std::string name;
  std::function<double(double)> offset;
};

std::vector<Case> driftingClocks() {
  return {{"constant", steadyDrift(10'000, 0)},
          {"100 ppm", steadyDrift(10'000, 100)},
          {"-100 ppm, behind", steadyDrift(-10'000, -100)},
          {"swings by 500 ppm in a minute", swingingDrift(10'000, 500, 60'000)},
          {"switches between 500 and -500 ppm", switchedDrift(-10'000, 500, 14'000)},
          {"at the limit", steadyDrift(10'000, 998)}};
}

std::vector<TwoClocks::Traffic> kindsOfTraffic() {
  return {{}, {.otherLateMs = 5}, {.otherLateMs = -5}, {.lost = 0.9}, {.periodMs = 500, .delayMs = 3}};
}

TEST(ClockOffset, containsTheTruthAfterEveryOperationWhateverTheDriftDoes) {
  for (const auto& clock : driftingClocks()) {
    for (const auto& traffic : kindsOfTraffic()) {
      for (unsigned seed = 0; seed < 20; ++seed) {
        TwoClocks clocks(seed, clock.offset, traffic);
        ClockOffset offset;
        for (int i = 0; i < 1000; ++i) {
          const double before = clocks.now();
          if (const auto told = clocks.next()) {
            offset.observe(*told);
          }
          for (const double moment : {before, clocks.now(), clocks.now() + 100}) {
            const auto interval = offset.interval(clocks.other(moment));
            ASSERT_TRUE(interval || traffic.lost > 0) << clock.name;
            ASSERT_TRUE(!interval || contains(*interval, clocks.offset(moment)))
                << clock.name << ", seed " << seed << ", operation " << i;
          }
        }
        ASSERT_EQ(offset.leaps(), 0U) << clock.name;
      }
    }
  }
}

// In the mean over the second half of 100 s.
double meanBoundMs(const TwoClocks::Traffic& traffic) {
  TwoClocks clocks(1, steadyDrift(10'000, 100), traffic);
  ClockOffset offset;
  double sum = 0;
  int counted = 0;
  while (clocks.now() < 100'000) {
    if (const auto told = clocks.next()) {
      offset.observe(*told);
    }
    if (clocks.now() > 50'000) {
      sum += toMilliseconds(offset.interval(clocks.other(clocks.now()))->bound());
      ++counted;
    }
  }
  return sum / counted;
}

TEST(ClockOffset, isNarrowWhereEachRankIsTheLastNowAndThen) {
  EXPECT_LT(meanBoundMs({}), 0.12);
  EXPECT_LT(meanBoundMs({.lost = 0.9}), 0.5);
}

TEST(ClockOffset, isWideWhereARankIsEarlyEachTime) {
  const double bound = meanBoundMs({.otherLateMs = -5});
  EXPECT_GT(bound, 0.5);
  EXPECT_LT(bound, 2.5);
}

// By how much the truth may be outside, once bounds were observed after a leap: each allows what passed between its events
// then, and less by the limit of drift as time goes on.
struct Allowance {
  double aboveMs = 1e9;
  double belowMs = 1e9;
  void pass(double milliseconds) {
    aboveMs -= milliseconds * ClockOffset::kMaxDriftPpm * 1e-6;
    belowMs -= milliseconds * ClockOffset::kMaxDriftPpm * 1e-6;
  }
  void observe(const Crossing& told, Duration truth) {
    aboveMs = std::min(aboveMs, toMilliseconds(truth - (told.referenceBefore - told.otherAfter)));
    belowMs = std::min(belowMs, toMilliseconds(told.referenceAfter - told.otherBefore - truth));
  }
};

TEST(ClockOffset, afterALeapTheTruthIsOutsideByNoMoreAndNoLongerThanItsHeaderSays) {
  constexpr double kWhen = 20'000;
  int outside = 0;
  for (const double size : {-10'000.0, -5.0, -0.5, -0.2, 0.2, 0.5, 5.0, 10'000.0}) {
    for (unsigned seed = 0; seed < 50; ++seed) {
      TwoClocks clocks(seed, leap(10'000, 10'000 + size, kWhen));
      ClockOffset offset;
      Allowance allowed;
      while (clocks.now() < 2 * kWhen) {
        const double before = clocks.now();
        const auto told = clocks.next();
        offset.observe(*told);
        const double now = clocks.now();
        const Duration truth = clocks.offset(now);
        allowed.pass(now - before);
        if (before > kWhen) {
          allowed.observe(*told, truth);
        }
        if (const auto interval = offset.interval(clocks.other(now)); interval && before > kWhen) {
          outside += contains(*interval, truth) ? 0 : 1;
          ASSERT_LE(toMilliseconds(truth - interval->upper), std::max(0.0, allowed.aboveMs) + 1e-5)
              << size << ' ' << seed;
          ASSERT_LE(toMilliseconds(interval->lower - truth), std::max(0.0, allowed.belowMs) + 1e-5)
              << size << ' ' << seed;
        }
      }
      ASSERT_LE(offset.leaps(), 1U) << size << ", seed " << seed;
      ASSERT_TRUE(std::abs(size) < 5 || offset.leaps() == 1) << size << ", seed " << seed;
    }
  }
  EXPECT_GT(outside, 0) << "or nothing was put to the test";
}

}  // namespace
}  // namespace straggler
