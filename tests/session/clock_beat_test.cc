#include "backend/session/clock_beat.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_exchange.h"
#include "tests/fakes/operations.h"

namespace straggler {
namespace {

class ClockBeatTest : public testing::Test {
 protected:
  Beat shown() const { return decodeBeat(exchange_->beat.value()).value(); }

  FakeClock clock_{at(1000)};
  std::shared_ptr<FakeExchange> exchange_ = std::make_shared<FakeExchange>();
  ClockBeat beat_{{exchange_}, clock_};
};

TEST_F(ClockBeatTest, nothingIsShownWhileNobodyIsAsked) {
  beat_.round();
  beat_.ask({}, clock_.now());
  beat_.round();
  EXPECT_EQ(exchange_->beatsShown, 0U);
}

TEST_F(ClockBeatTest, eachBeatHasItsNumberItsTimeAndWhenTheOneBeforeWasThere) {
  exchange_->delay = [this] { clock_.advance(ms(2)); };
  beat_.ask({3, 5}, clock_.now());
  beat_.round();
  EXPECT_EQ(shown().number, 1U);
  EXPECT_EQ(shown().before, at(1000));
  EXPECT_EQ(shown().asked, (std::vector<int>{3, 5}));
  clock_.advance(ms(50));
  beat_.round();
  EXPECT_EQ(shown().number, 2U);
  EXPECT_EQ(shown().before, at(1054));
  EXPECT_EQ(shown().lastShown, at(1004)) << "two delays after it was begun";
}

TEST_F(ClockBeatTest, thatNobodyIsAskedAnyMoreIsShownOnce) {
  beat_.ask({3}, clock_.now());
  beat_.round();
  beat_.ask({}, clock_.now());
  beat_.round();
  beat_.round();
  EXPECT_EQ(exchange_->beatsShown, 2U);
  EXPECT_TRUE(shown().asked.empty());
}

TEST_F(ClockBeatTest, whoIsAskedIsLookedAtOnceASecond) {
  EXPECT_TRUE(beat_.due(clock_.now()));
  beat_.ask({}, clock_.now());
  EXPECT_FALSE(beat_.due(clock_.now() + ms(999)));
  EXPECT_TRUE(beat_.due(clock_.now() + ms(1000)));
}

}  // namespace
}  // namespace straggler
