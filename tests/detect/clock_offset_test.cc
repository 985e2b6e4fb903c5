#include "backend/detect/clock_offset.h"

#include <random>

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"

namespace straggler {
namespace {

// One operation of two ranks with random arrivals and completions, on the true clock.
struct Traffic {
  explicit Traffic(unsigned seed) : random(seed) {}
  double draw(double limit) { return std::exponential_distribution<double>(1 / limit)(random); }

  // Tells `offset` of the next operation, the other rank's clock being behind by `truth`.
  void next(ClockOffset& offset, Duration truth) {
    now += draw(5);
    const double arrivalQ = now + draw(1);
    const double arrivalR = now + draw(1);
    const double complete = std::max(arrivalQ, arrivalR);
    const Instant completedQ = at(complete + draw(0.3));
    const Instant arrivedR = at(arrivalR) - truth;
    const Instant completedR = at(complete + draw(0.3)) - truth;
    offset.observe(at(arrivalQ) - completedR, completedQ - arrivedR);
    now = complete;
  }

  std::mt19937 random;
  double now = 1000;
};

TEST(ClockOffset, workedExampleOfItsHeader) {
  ClockOffset offset;
  // a_q = 100, c_q = 130; a_r = 5, c_r = 29.
  offset.observe(ms(100 - 29), ms(130 - 5));
  ASSERT_TRUE(offset.interval());
  EXPECT_EQ(offset.interval()->lower, ms(71));
  EXPECT_EQ(offset.interval()->upper, ms(125));
  EXPECT_EQ(offset.interval()->middle(), ms(98));
  EXPECT_EQ(offset.interval()->bound(), ms(27));
}

TEST(ClockOffset, nothingIsKnownBeforeTheFirstOperation) { EXPECT_FALSE(ClockOffset().interval()); }

TEST(ClockOffset, everyOperationNarrowsTheInterval) {
  ClockOffset offset;
  offset.observe(ms(10), ms(30));
  offset.observe(ms(15), ms(40));
  offset.observe(ms(5), ms(22));
  EXPECT_EQ(offset.interval()->lower, ms(15));
  EXPECT_EQ(offset.interval()->upper, ms(22));
}

TEST(ClockOffset, containsTheTruthUnderTenSecondsOfOffsetAndRandomDelays) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const Duration truth = seed % 2 == 0 ? ms(10'000) : ms(-10'000);
    Traffic traffic(seed);
    ClockOffset offset;
    for (int i = 0; i < 40; ++i) {
      traffic.next(offset, truth);
      const auto interval = offset.interval();
      ASSERT_TRUE(interval);
      ASSERT_LE(interval->lower, truth) << "seed " << seed;
      ASSERT_GE(interval->upper, truth) << "seed " << seed;
    }
    ASSERT_LE(std::abs((offset.interval()->middle() - truth).count()), offset.interval()->bound().count());
    ASSERT_LT(offset.interval()->bound(), ms(1)) << "40 operations say more than a single one";
  }
}

TEST(ClockOffset, clockThatJumpsIsFollowed) {
  Traffic traffic(3);
  ClockOffset offset;
  for (int i = 0; i < 1000; ++i) {
    traffic.next(offset, ms(10'000));
  }
  for (int i = 0; i < 20; ++i) {
    traffic.next(offset, ms(-500));
    const auto interval = offset.interval();
    ASSERT_TRUE(interval);
    EXPECT_LE(interval->lower, ms(-500));
    EXPECT_GE(interval->upper, ms(-500));
  }
}

TEST(ClockOffset, driftIsForgottenAfterTwoGenerations) {
  // 20 µs a second, and some 150 operations a second: a generation spans some 35 µs of drift.
  Traffic traffic(5);
  ClockOffset offset;
  for (int i = 0; i < 20'000; ++i) {
    traffic.next(offset, ms(10'000 + traffic.now * 20e-6));
  }
  const Duration truth = ms(10'000 + traffic.now * 20e-6);
  const auto interval = offset.interval();
  ASSERT_TRUE(interval);
  EXPECT_LE(std::abs((interval->middle() - truth).count()), (interval->bound() + ms(0.1)).count());
}

}  // namespace
}  // namespace straggler
