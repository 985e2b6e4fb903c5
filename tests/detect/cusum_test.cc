#include "backend/detect/cusum.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/fakes/ranks.h"

namespace straggler {
namespace {

constexpr double kLimit = 13;

// Windows of this excess until the test is on; 0: not within 1000.
int windowsUntilOn(double excess, double gate, double noise) {
  Cusum test;
  for (int window = 1; window <= 1000; ++window) {
    if (test.add(excess, gate, noise, kLimit) == Cusum::Change::kOn) {
      return window;
    }
  }
  return 0;
}

int windowsUntilOff(double excess, double gate, double noise, double size) {
  Cusum test;
  test.on = true;
  for (int window = 1; window <= 1000; ++window) {
    if (test.add(excess, gate, noise, kLimit, size) == Cusum::Change::kOff) {
      return window;
    }
  }
  return 0;
}

TEST(Cusum, theLargerTheExcessTheSoonerButNeverBeforeThreeWindows) {
  EXPECT_EQ(windowsUntilOn(600, 1.1, 0.1), 3);
  EXPECT_EQ(windowsUntilOn(6, 1.1, 0.1), 3);
  EXPECT_EQ(windowsUntilOn(2, 1.1, 0.1), 4);  // 2 / 0.49 * (2 / 1.1 - 1) = 3.3 a window
  EXPECT_EQ(windowsUntilOn(1.3, 1.1, 0.1), 18);
}

TEST(Cusum, excessBelowTheGateNeverCounts) {
  EXPECT_EQ(windowsUntilOn(1.0, 1.1, 0.1), 0);
  EXPECT_EQ(windowsUntilOn(-5, 1.1, 0.1), 0);
}

TEST(Cusum, noiseAsksForMoreWindows) {
  EXPECT_EQ(windowsUntilOn(6, 1.1, 3), 11);  // 2.2 / 9 * 4.9 = 1.2 a window
}

TEST(Cusum, windowsBelowTheGateSpeakAgainstIt) {
  Cusum test;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(test.add(6, 1.1, 0.1, kLimit), Cusum::Change::kNone);
    EXPECT_EQ(test.add(6, 1.1, 0.1, kLimit), Cusum::Change::kNone);
    for (int good = 0; good < 3; ++good) {
      test.add(0, 1.1, 0.1, kLimit);
    }
    EXPECT_EQ(test.score, 0);
  }
}

TEST(Cusum, isOffAfterTwoGoodWindows) { EXPECT_EQ(windowsUntilOff(0, 1.1, 0.1, 6), 2); }

TEST(Cusum, betweenThreeQuartersOfTheGateAndTheGateNothingChanges) {
  EXPECT_EQ(windowsUntilOff(0.9, 1.1, 0.1, 6), 0);
  EXPECT_EQ(windowsUntilOn(0.9, 1.1, 0.1), 0);
}

TEST(Cusum, largeExcessThatIsGoneShowsSoonerUnderNoise) {
  EXPECT_LT(windowsUntilOff(0, 1.1, 2, 8), windowsUntilOff(0, 1.1, 2, 2));
}

// Without a change, the windows to a false alarm are at least exp(limit) on average; here the noise is twice the gate.
TEST(Cusum, noiseAloneRaisesNoAlarmAtTheRateThatTheLimitStandsFor) {
  const double limit = std::log(1e4);
  int alarms = 0;
  constexpr int kWindows = 100'000;
  Cusum test;
  for (int window = 0; window < kWindows; ++window) {
    if (test.add(2 * noise(0, window), 1, 2, limit) == Cusum::Change::kOn) {
      ++alarms;
      test = {};
    }
  }
  EXPECT_LE(alarms, 10) << "exp(limit) says 10 in 100,000 windows at most";
}

TEST(Cusum, ruleThatOnlySaysAboveNeedsThreeWindowsAndTwoToEnd) {
  Cusum test;
  EXPECT_EQ(test.add(true, kLimit), Cusum::Change::kNone);
  EXPECT_EQ(test.add(true, kLimit), Cusum::Change::kNone);
  EXPECT_EQ(test.add(true, kLimit), Cusum::Change::kOn);
  test.on = true;
  EXPECT_EQ(test.add(false, kLimit), Cusum::Change::kNone);
  EXPECT_EQ(test.add(false, kLimit), Cusum::Change::kOff);
}

TEST(Cusum, confidenceCountsAllRanks) {
  Cusum test;
  test.score = std::log(1e5);
  EXPECT_NEAR(test.confidence(1), 1 - 1e-5, 1e-9);
  EXPECT_NEAR(test.confidence(1000), 0.99, 1e-9);
  test.score = 0;
  EXPECT_EQ(test.confidence(4), 0);
}

}  // namespace
}  // namespace straggler
