#include "backend/base/clock.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.h"

namespace straggler {
namespace {

TEST(Clock, domainIsTheSameAtEveryCall) {
  EXPECT_EQ(clockDomain(), clockDomain());
  EXPECT_FALSE(clockDomain().empty()) << "Linux tells the boot's id in /proc/sys/kernel/random/boot_id";
}

TEST(Clock, instantsReadBackFromNanoseconds) {
  const std::int64_t ns = 1'234'567'890'123;
  EXPECT_EQ(toNanoseconds(fromNanoseconds(ns)), ns);
  EXPECT_DOUBLE_EQ(toMilliseconds(std::chrono::microseconds(1500)), 1.5);
}

TEST(Clock, steadyClockNeverRunsBackwards) {
  const SteadyClock clock;
  const Instant first = clock.now();
  EXPECT_LE(first, clock.now());
}

TEST(Clock, fakeClockMovesOnlyByHand) {
  FakeClock clock(fromNanoseconds(5));
  EXPECT_EQ(clock.now(), clock.now());
  clock.advance(Duration(3));
  EXPECT_EQ(toNanoseconds(clock.now()), 8);
}

}  // namespace
}  // namespace straggler
