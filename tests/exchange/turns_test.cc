#include "backend/exchange/turns.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/operations.h"

namespace straggler {
namespace {

// Turns taken in so many seconds by who asks every 250 ms.
int takenIn(double seconds, Turns& turns, FakeClock& clock) {
  int taken = 0;
  for (double passed = 0; passed < seconds; passed += 0.25) {
    if (turns.due(clock.now())) {
      turns.taken(clock.now());
      ++taken;
    }
    clock.advance(ms(250));
  }
  return taken;
}

class TurnsTest : public testing::Test {
 protected:
  FakeClock clock_{at(1e6)};
  Turns turns_;
};

TEST_F(TurnsTest, firstIsDueAtOnceAndTheNextAfterHalfASecond) {
  EXPECT_TRUE(turns_.due(clock_.now()));
  turns_.taken(clock_.now());
  clock_.advance(ms(499));
  EXPECT_FALSE(turns_.due(clock_.now()));
  clock_.advance(ms(1));
  EXPECT_TRUE(turns_.due(clock_.now()));
}

TEST_F(TurnsTest, longJobTakesEverFewer) {
  EXPECT_EQ(takenIn(60, turns_, clock_), 120);
  EXPECT_NEAR(takenIn(3540, turns_, clock_), 1250 - 120, 50);
  takenIn(24 * 3600, turns_, clock_);
  EXPECT_NEAR(takenIn(3600, turns_, clock_), 3600 / 64, 1) << "but never fewer than this";
}

TEST_F(TurnsTest, atTheEndEachIsDueHoweverLongTheJobWas) {
  takenIn(24 * 3600, turns_, clock_);
  turns_.taken(clock_.now());
  EXPECT_FALSE(turns_.due(clock_.now()));
  turns_.end();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(turns_.due(clock_.now()));
    turns_.taken(clock_.now());
  }
}

}  // namespace
}  // namespace straggler
