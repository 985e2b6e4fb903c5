#include "backend/detect/clock_drift.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/fakes/two_clocks.h"

namespace straggler {
namespace {

TEST(ClockDrift, workedExampleOfItsHeader) {
  ClockDrift drift;
  drift.add(at(0), {ms(71), ms(73)});
  EXPECT_FALSE(drift.interval());
  drift.add(at(50'000), {ms(75), ms(77)});
  const auto interval = drift.interval();
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->lowerPpm, 40);
  EXPECT_DOUBLE_EQ(interval->upperPpm, 120);
  EXPECT_DOUBLE_EQ(interval->middlePpm(), 80);
  EXPECT_DOUBLE_EQ(interval->boundPpm(), 40);
  EXPECT_EQ(interval->span, ms(50'000));
}

TEST(ClockDrift, whatTheLimitSaysAnywayIsNotTold) {
  ClockDrift drift;
  drift.add(at(0), {ms(70), ms(80)});
  drift.add(at(5'000), {ms(70), ms(80)});
  EXPECT_FALSE(drift.interval());
}

TEST(ClockDrift, oneSideMayBeTheLimits) {
  ClockDrift drift;
  drift.add(at(0), {ms(70), ms(71)});
  drift.add(at(2'000), {ms(71), ms(73)});
  ASSERT_TRUE(drift.interval());
  EXPECT_DOUBLE_EQ(drift.interval()->lowerPpm, 0);
  EXPECT_DOUBLE_EQ(drift.interval()->upperPpm, 1000);
}

TEST(ClockDrift, spanBeginsWhereTheOffsetWasKnownBest) {
  ClockDrift drift;
  drift.add(at(0), {ms(0), ms(100)});  // while connections are made
  drift.add(at(1'000), {ms(70), ms(71)});
  drift.add(at(11'000), {ms(70), ms(71)});
  ASSERT_TRUE(drift.interval());
  EXPECT_EQ(drift.interval()->span, ms(10'000));
  EXPECT_DOUBLE_EQ(drift.interval()->upperPpm, 100);
}

TEST(ClockDrift, isOfTheLastTwoMinutes) {
  ClockDrift drift;
  for (int second = 0; second < 1000; ++second) {
    drift.add(at(second * 1e3), {ms(70), ms(71)});
  }
  ASSERT_TRUE(drift.interval());
  EXPECT_LE(drift.interval()->span, ClockDrift::kApart * ClockDrift::kMoments);
  EXPECT_GE(drift.interval()->span, ClockDrift::kApart * (ClockDrift::kMoments - 2));
}

TEST(ClockDrift, momentToldOutOfOrderIsPassedOver) {
  ClockDrift drift;
  drift.add(at(50'000), {ms(71), ms(73)});
  drift.add(at(0), {ms(75), ms(77)});
  EXPECT_FALSE(drift.interval());
}

TEST(ClockDrift, leapIsNoDrift) {
  ClockDrift drift;
  drift.add(at(0), {ms(71), ms(73)});
  drift.forget();
  drift.add(at(50'000), {ms(10'075), ms(10'077)});
  EXPECT_FALSE(drift.interval());
}

TEST(ClockDrift, containsTheMeanOverItsSpanWhateverTheDriftDoes) {
  for (const auto& truth : {steadyDrift(10'000, 100), steadyDrift(-10'000, -100), swingingDrift(10'000, 500, 60'000),
                            switchedDrift(10'000, 500, 14'000)}) {
    for (unsigned seed = 0; seed < 10; ++seed) {
      TwoClocks clocks(seed, truth);
      ClockOffset offset;
      ClockDrift drift;
      std::vector<std::pair<Instant, Duration>> seen;
      while (clocks.now() < 60'000) {
        offset.observe(*clocks.next());
        const Instant newest = clocks.other(clocks.now());
        drift.add(newest, *offset.interval(newest));
        seen.emplace_back(newest, clocks.offset(clocks.now()));
        const auto interval = drift.interval();
        if (!interval) {
          continue;
        }
        const auto begin = std::find_if(seen.begin(), seen.end(),
                                        [&](const auto& moment) { return moment.first == newest - interval->span; });
        ASSERT_NE(begin, seen.end());
        const double mean = 1e6 * toMilliseconds(seen.back().second - begin->second) / toMilliseconds(interval->span);
        ASSERT_LE(interval->lowerPpm, mean) << "seed " << seed;
        ASSERT_GE(interval->upperPpm, mean) << "seed " << seed;
      }
      ASSERT_LT(drift.interval()->boundPpm(), 5) << "after a minute";
    }
  }
}

}  // namespace
}  // namespace straggler
