// A rank's side of the exchange of stamps, and both sides together on two clocks and a slow store.
#include "backend/session/clock_listener.h"

#include <gtest/gtest.h>

#include "backend/detect/clocks.h"
#include "backend/session/clock_beat.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_exchange.h"
#include "tests/fakes/operations.h"
#include "tests/fakes/two_clocks.h"

namespace straggler {
namespace {

constexpr Duration kPeriod = std::chrono::seconds(1);

class ClockListenerTest : public testing::Test {
 protected:
  void show(std::uint64_t number, double beforeMs, double lastShownMs, std::vector<int> asked = {3}) {
    exchange_.beat = encodeBeat({number, at(beforeMs), at(lastShownMs), std::move(asked)});
  }
  std::optional<ClockReading> turn(double advancedMs) {
    clock_.advance(ms(advancedMs));
    return listener_.round(clock_.now(), exchange_);
  }

  FakeClock clock_{at(0)};
  FakeExchange exchange_;
  ClockListener listener_{3, clock_, kPeriod};
};

TEST_F(ClockListenerTest, looksOnceAPeriodWhileItIsNotAsked) {
  show(6, 90, 89, {2});
  for (int i = 0; i < 121; ++i) {
    EXPECT_FALSE(turn(25));
    EXPECT_FALSE(listener_.listening());
  }
  EXPECT_EQ(exchange_.beatLooks, 4U);
}

TEST_F(ClockListenerTest, workedExampleOfTheBeatsHeader) {
  show(6, 50, 0);
  EXPECT_FALSE(turn(90));
  EXPECT_TRUE(listener_.listening());
  EXPECT_FALSE(turn(9));  // 99: sees beat 6 still
  exchange_.delay = [this] { clock_.advance(ms(0.2)); };
  show(7, 100, 50.1);
  EXPECT_FALSE(turn(1));  // from 100.0 to 100.4
  EXPECT_FALSE(listener_.listening()) << "what is left is not urgent";
  show(8, 150, 100.1);
  EXPECT_EQ(turn(25), (ClockReading{at(100), at(100.1), at(99), at(100.4)}));
  EXPECT_FALSE(turn(25)) << "not before the next period";
}

TEST_F(ClockListenerTest, lookThatEndsAfterTheBeatWasShownCountsFromItsBegin) {
  show(6, 50, 0);
  turn(90);
  int waits = 0;
  exchange_.delay = [this, &waits] {
    clock_.advance(ms(0.2));
    if (++waits == 2) {
      show(7, 99.3, 50.1);  // right after it has looked
    }
  };
  EXPECT_FALSE(turn(9));
  EXPECT_FALSE(turn(1));
  show(8, 150, 99.35);
  const auto reading = turn(25);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->before, at(99));
  EXPECT_GT(reading->after, at(99.3));
}

TEST_F(ClockListenerTest, beatThatWasMissedWidensTheReadingAndIsStillRight) {
  show(6, 50, 0);
  turn(90);
  show(9, 200, 150.1);
  EXPECT_FALSE(turn(120));
  show(12, 350, 300.1);
  EXPECT_EQ(turn(140), (ClockReading{at(200), at(300.1), at(90), at(210)}));
}

TEST_F(ClockListenerTest, rootThatStopsIsGivenUpAndLookedForAgain) {
  show(6, 50, 0);
  turn(90);
  for (int i = 0; i < 310; ++i) {
    EXPECT_FALSE(turn(1));
  }
  EXPECT_FALSE(listener_.listening());
  const auto looks = exchange_.beatLooks;
  EXPECT_LT(looks, 305U);
  turn(1);
  EXPECT_EQ(exchange_.beatLooks, looks);
  turn(1000);
  EXPECT_EQ(exchange_.beatLooks, looks + 1);
}

TEST_F(ClockListenerTest, whatIsNoBeatIsNone) {
  exchange_.beat = std::vector<std::uint8_t>(64, 0xFF);
  EXPECT_FALSE(turn(1));
  EXPECT_FALSE(listener_.listening());
}

// ---- Both sides ----

// A clock that reads what a function of the true time says.
class DerivedClock final : public Clock {
 public:
  explicit DerivedClock(std::function<Instant()> read) : read_(std::move(read)) {}
  Instant now() const noexcept override { return read_(); }

 private:
  std::function<Instant()> read_;
};

// The root turns every 50 ms, rank 1 every 25, or after some more than 1 ms; each way to the store takes 0.05 ms in the mean,
// now and then 20 times as long. While the root waits for the store the rank goes on.
class TwoSides {
 public:
  TwoSides(unsigned seed, std::function<double(double)> offset) : truth_(seed, std::move(offset)) {
    clocks_.setDomain(0, "host-a");
    clocks_.setDomain(1, "host-b");
    exchange_->delay = [this] { waitForStore(truth_.draw(truth_.draw(1) > 3 ? 1 : 0.05)); };
  }

  void turn() {
    if (rankNext_ < rootNext_) {
      rankTurn();
      return;
    }
    reach(rootNext_);
    if (beat_.due(rootClock_.now())) {
      beat_.ask(clocks_.loose(kMaxAsked), rootClock_.now());
    }
    beat_.round();
    rootNext_ = truth_.now() + 50;
  }
  void rankTurn() {
    rankTurns_ = true;
    reach(rankNext_);
    if (const auto reading = listener_.round(rankClock_.now(), *exchange_)) {
      ++readings;
      clocks_.observe(1, {reading->rootBefore, reading->after, reading->before, reading->rootAfter});
    }
    rankNext_ = truth_.now() + (listener_.listening() ? 1 + truth_.draw(0.1) : 25);
    rankTurns_ = false;
  }
  void waitForStore(double milliseconds) {
    const double end = truth_.now() + milliseconds;
    while (!rankTurns_ && rankNext_ < end) {
      rankTurn();
    }
    reach(end);
  }
  // An operation that bounds nothing: the clock has come so far.
  void tell() {
    const double now = truth_.now();
    clocks_.hear({{0, at(now), {}}, {1, truth_.other(now), {}}});
  }
  void reach(double time) { truth_.wait(std::max(0.0, time - truth_.now())); }

  double now() const { return truth_.now(); }
  std::optional<OffsetInterval> known() const { return clocks_.relations()[0].offset; }
  Duration offset() const { return truth_.offset(truth_.now()); }
  // Of the offset when the clock was last heard of.
  bool holdsTheTruth() const {
    const auto relation = clocks_.relations()[0];
    const Duration since = ClockOffset::drifted(std::chrono::abs(truth_.other(truth_.now()) - relation.at));
    return relation.offset->lower <= offset() + since && offset() - since <= relation.offset->upper;
  }
  // An operation for which the other rank comes 5 ms before the root, always.
  void operate() {
    const double arrivalR = truth_.now();
    const double arrivalQ = arrivalR + 5;
    const double completed = arrivalQ + 0.01 + truth_.draw(0.2);
    clocks_.observe({{0, at(arrivalQ), at(completed)}, {1, truth_.other(arrivalR), truth_.other(completed)}});
  }

  int readings = 0;
  std::shared_ptr<FakeExchange> exchange_ = std::make_shared<FakeExchange>();

 private:
  TwoClocks truth_;
  Clocks clocks_;
  DerivedClock rootClock_{[this] { return at(truth_.now()); }};
  DerivedClock rankClock_{[this] { return truth_.other(truth_.now()); }};
  ClockBeat beat_{{exchange_}, rootClock_};
  ClockListener listener_{1, rankClock_, kPeriod};
  double rootNext_ = 0;
  double rankNext_ = 7;
  bool rankTurns_ = false;
};

TEST(ClockExchange, boundsTheClockOfARankWhoseTrafficBoundsNothing) {
  for (const auto& offset : {steadyDrift(10'000, 100), steadyDrift(-10'000, -100), switchedDrift(10'000, 500, 9'000)}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      TwoSides sides(seed, offset);
      while (sides.now() < 20'000) {
        sides.turn();
        sides.tell();
        if (sides.known()) {
          ASSERT_TRUE(sides.holdsTheTruth()) << "seed " << seed << " at " << sides.now();
        }
      }
      EXPECT_GE(sides.readings, 15) << "one a second";
      EXPECT_LE(sides.readings, 20);
      EXPECT_LT(sides.known()->bound(), ms(3));
    }
  }
}

// The traffic alone leaves 2.5 ms: the other rank is 5 ms early each time.
TEST(ClockExchange, tightensTheSideThatARankWhichIsNeverLastLeavesLoose) {
  double sum = 0;
  int windows = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    TwoSides sides(seed, steadyDrift(10'000, 100));
    double nextOperation = 0;
    double nextWindow = 5'000;
    while (sides.now() < 20'000) {
      sides.turn();
      if (sides.now() >= nextOperation) {
        sides.operate();
        nextOperation = sides.now() + 16;
      }
      if (sides.now() >= nextWindow) {
        ASSERT_TRUE(sides.holdsTheTruth()) << "seed " << seed << " at " << sides.now();
        sum += toMilliseconds(sides.known()->bound());
        ++windows;
        nextWindow += 160;
      }
    }
  }
  EXPECT_LT(sum / windows, 1.5);
}

TEST(ClockExchange, costsTheStoreSomeThirtyLooksASecond) {
  TwoSides sides(1, steadyDrift(10'000, 100));
  while (sides.now() < 10'000) {
    sides.turn();
    sides.tell();
  }
  EXPECT_LT(sides.exchange_->beatLooks, 400U);
  EXPECT_LT(sides.exchange_->beatsShown, 200U);
}

}  // namespace
}  // namespace straggler
