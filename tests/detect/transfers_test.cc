#include "backend/detect/transfers.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/fakes/ranks.h"

namespace straggler {
namespace {

constexpr GroupId kWorld = 7;

// A job of two ranks whose step takes 20 ms of its own work and the smallest wait of `waitMs`.
class TransfersTest : public testing::Test {
 protected:
  static constexpr double kLimit = 11.5;  // ln(100,000)

  // A window of ten steps with two operations of 1 MiB each, of which each takes `transferMs`.
  bool window(double transferMs, double waitMs, bool hold = false, GroupId group = kWorld) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      const double jitter = 0.1 * noise(static_cast<int>(group), static_cast<std::int64_t>(20 * step_ + i));
      transfers.add({group, i, OpKind::kAllReduce}, 21, transferMs + jitter, 1);
    }
    return close(waitMs, hold);
  }
  WindowComparison windowOf(double stepMs) const {
    WindowComparison window;
    window.firstStep = step_;
    window.steps = 10;
    window.stepMs = stepMs;
    window.runDelayMs = runDelayMs_;
    window.ranks.resize(2);
    return window;
  }
  bool close(double waitMs, bool hold = false) {
    WindowComparison window = windowOf(20 + waitMs);
    window.ranks[0].told = window.ranks[1].told = true;
    window.ranks[0].meanWaitMs = waitMs;
    window.ranks[1].meanWaitMs = waitMs + 5;
    step_ += 10;
    return transfers.close(window, hold, kLimit);
  }
  int windowsUntilSlow(double transferMs, double waitMs) {
    for (int i = 1; i <= 50; ++i) {
      if (window(transferMs, waitMs)) {
        return i;
      }
    }
    return -1;
  }
  void healthy(int windows) {
    for (int i = 0; i < windows; ++i) {
      ASSERT_FALSE(window(4, 9));
    }
  }

  Transfers transfers;
  std::int64_t step_ = 0;
  std::optional<double> runDelayMs_;
};

TEST_F(TransfersTest, workedExampleOfItsHeaderIsSlowAfterThreeWindows) {
  healthy(20);
  EXPECT_EQ(windowsUntilSlow(29, 57), 3);
  EXPECT_TRUE(transfers.slow());
  EXPECT_NEAR(transfers.excessMs(), 48, 1) << "of 50 that are moved, the wait";
  EXPECT_EQ(transfers.sinceStep(), 200);
  EXPECT_EQ(transfers.slowGroups(), std::vector<GroupId>{kWorld});
}

TEST_F(TransfersTest, transferThatIsHiddenBehindWorkCostsNothing) {
  healthy(20);
  EXPECT_EQ(windowsUntilSlow(29, 9), -1);
}

TEST_F(TransfersTest, longerWaitsWithTheSameTransfersAreNoMatterOfTheNetwork) {
  healthy(20);
  EXPECT_EQ(windowsUntilSlow(4, 57), -1) << "ranks take turns in being late";
}

TEST_F(TransfersTest, whatIsBelowTheGateIsNotSaid) {
  healthy(20);
  EXPECT_EQ(windowsUntilSlow(4.9, 10.8), -1) << "1.8 ms of a step of 31";
  transfers = Transfers();
  healthy(20);
  EXPECT_GT(windowsUntilSlow(6.5, 14), 0) << "5 ms of a step of 34";
}

TEST_F(TransfersTest, isOverWhenTransfersAreAsBefore) {
  healthy(20);
  windowsUntilSlow(29, 57);
  int windows = 1;
  while (!window(4, 9)) {
    ++windows;
  }
  EXPECT_EQ(windows, 2);
  EXPECT_FALSE(transfers.slow());
  EXPECT_FALSE(transfers.settled());
}

TEST_F(TransfersTest, slowFromTheBeginningIsTheJobsOwnPace) {
  EXPECT_EQ(windowsUntilSlow(29, 57), -1) << "there is no past to tell it from";
}

TEST_F(TransfersTest, settlesAfterLongAndIsThenCompared) {
  healthy(20);
  windowsUntilSlow(29, 57);
  int windows = 1;
  while (!window(29, 57)) {
    ++windows;
  }
  EXPECT_EQ(windows, static_cast<int>(Transfers::kSettled));
  EXPECT_TRUE(transfers.settled());
  EXPECT_EQ(windowsUntilSlow(29, 57), -1);
  EXPECT_EQ(windowsUntilSlow(59, 117), 3);
}

TEST_F(TransfersTest, whileSomethingElseExplainsItNothingIsTested) {
  healthy(20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(window(29, 57, true));
  }
  EXPECT_EQ(windowsUntilSlow(29, 57), 3) << "and the past is as it was";
}

TEST_F(TransfersTest, operationsOfOtherSizesDoNotMixWithThem) {
  // From the middle on the job sends as much again in operations of another size, each as fast as they always were.
  healthy(20);
  for (int i = 0; i < 50; ++i) {
    for (std::uint64_t op = 0; op < 200; ++op) {
      transfers.add({kWorld, op, OpKind::kAllReduce}, 26, 40, 1);
    }
    EXPECT_FALSE(window(4, 9));
  }
}

TEST_F(TransfersTest, slowGroupIsToldFromOneThatIsNot) {
  constexpr GroupId kOther = 8;
  for (int i = 0; i < 30; ++i) {
    for (std::uint64_t op = 0; op < 20; ++op) {
      transfers.add({kOther, op, OpKind::kAllReduce}, 21, 4, 1);
    }
    window(i < 20 ? 4 : 29, i < 20 ? 9 : 57);
  }
  EXPECT_EQ(transfers.slowGroups(), std::vector<GroupId>{kWorld});
}

TEST_F(TransfersTest, sampleStandsForAllThatItWasTakenFrom) {
  // One operation in four is told: 8 a step in truth.
  const auto sampled = [this](double transferMs, double waitMs) {
    for (std::uint64_t op = 0; op < 20; ++op) {
      transfers.add({kWorld, op, OpKind::kAllReduce}, 21, transferMs, 4);
    }
    return close(waitMs);
  };
  for (int i = 0; i < 20; ++i) {
    ASSERT_FALSE(sampled(1, 9));
  }
  while (!sampled(3, 100)) {
  }
  EXPECT_NEAR(transfers.excessMs(), 16, 0.5) << "8 times 2 ms";
}

TEST_F(TransfersTest, windowOfWhichARankDidNotTellIsPassedOver) {
  healthy(20);
  WindowComparison incomplete = windowOf(77);
  incomplete.ranks[0].told = true;
  incomplete.ranks[0].meanWaitMs = 57;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(transfers.close(incomplete, false, kLimit));
  }
}

TEST_F(TransfersTest, lackOfProcessorsIsNoMatterOfTheNetwork) {
  runDelayMs_ = 4.8;
  healthy(20);
  runDelayMs_ = 8.2;
  EXPECT_EQ(windowsUntilSlow(6.75, 14.5), -1) << "5.5 ms longer, for which threads at both ends wait 3.4 ms";
  EXPECT_EQ(windowsUntilSlow(29, 57), 3) << "48 ms are more than that";
  runDelayMs_.reset();
  EXPECT_FALSE(window(29, 57)) << "what was not measured explains nothing";
}

TEST_F(TransfersTest, noiseOfTheTransfersRaisesTheGate) {
  // Transfers that jump between 4 and 14 ms from window to window: 10 ms more for a while is nothing new.
  for (int i = 0; i < 400; ++i) {
    const bool high = static_cast<std::uint64_t>(i * 2654435761) % 7 < 3;
    EXPECT_FALSE(window(high ? 14 : 4, high ? 29 : 9)) << i;
  }
}

}  // namespace
}  // namespace straggler
