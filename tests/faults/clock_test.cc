// A monotonic clock that leaps, as a virtual machine's may when it is moved; and one that goes back, as none should.
#include <gtest/gtest.h>

#include "backend/session/monitor.h"
#include "tests/fakes/simulated_rank.h"

namespace straggler {
namespace {

constexpr auto kHour = std::chrono::hours(1);

TEST(ClockJump, leapOfAnHourIsOneLongStepAndNothingIsLost) {
  SimulatedRank rank;
  rank.steps(50);
  rank.clock.advance(kHour);
  rank.steps(50);
  EXPECT_TRUE(rank.finish());
  const auto windows = rank.exchange->messages<StepWindow>();
  ASSERT_EQ(windows.size(), 10U);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    EXPECT_EQ(windows[i].firstStep, static_cast<std::int64_t>(10 * i));
    for (std::size_t step = 0; step < windows[i].selfUs.size(); ++step) {
      EXPECT_EQ(windows[i].selfUs[step] > 1'000'000, 10 * i + step == 50) << "only the step of the leap is long";
    }
  }
  EXPECT_EQ(rank.exchange->messages<RankCounters>().back().messagesLost, 0U);
  EXPECT_TRUE(rank.complaints.empty());
}

TEST(ClockJump, clockThatGoesBackCostsItsStepAndTheEndIsTold) {
  SimulatedRank rank;
  rank.steps(50);
  rank.clock.advance(-kHour);
  rank.steps(50);
  EXPECT_TRUE(rank.finish());
  const auto counters = rank.exchange->messages<RankCounters>().back();
  EXPECT_TRUE(counters.final);
  EXPECT_EQ(counters.collectives, 400U);
  EXPECT_EQ(counters.messagesLost, 0U);
  for (const auto& window : rank.exchange->messages<StepWindow>()) {
    for (const std::uint32_t self : window.selfUs) {
      EXPECT_LT(self, 1'000'000U);
    }
  }
  EXPECT_TRUE(rank.complaints.empty());
}

}  // namespace
}  // namespace straggler
