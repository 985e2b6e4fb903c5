// What a rank tells beside its self times: time inside a DataLoader, on a processor, and waiting for one; and what else the
// operating system counted.
#include <utility>

#include <gtest/gtest.h>

#include "backend/session/monitor.h"
#include "tests/fakes/simulated_rank.h"

namespace straggler {
namespace {

constexpr int kThread = 4711;

// A kernel whose account of the training thread the test sets, and which counts how often it is asked.
struct FakeThread {
  std::optional<ThreadTimes> totals = ThreadTimes{};
  OsCounters counters;
  int asked = 0;

  // A rank of 30 ms a step, of which the thread is told to be kThread.
  SimulatedRank::Options options() {
    return {.osTotals = [this](int thread) {
      ++asked;
      return thread == kThread ? OsTotals{totals, counters} : OsTotals{};
    }};
  }
  // Steps in each of which the thread runs and waits for so long.
  void steps(SimulatedRank& rank, int count, double cpuMs, double runDelayMs, double lengthMs = 30) {
    for (int i = 0; i < count; ++i) {
      totals->cpu += ms(cpuMs);
      totals->runDelay += ms(runDelayMs);
      rank.step(lengthMs);
    }
  }
};

std::vector<StepWindow> windowsOf(SimulatedRank& rank) {
  EXPECT_TRUE(rank.finish());
  return rank.exchange->messages<StepWindow>();
}

// ---- Input ----

TEST(MonitorEvidence, windowTellsTheInputTimeOfItsSteps) {
  SimulatedRank rank({.fetchMs = 5});
  rank.steps(30);
  const auto windows = windowsOf(rank);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows[1].inputUs, 50'000U);
  EXPECT_EQ(windows[2].inputUs, 50'000U);
}

TEST(MonitorEvidence, withoutADataLoaderInputTimeIsAbsentAndNotZero) {
  SimulatedRank rank;
  rank.steps(30);
  for (const auto& window : windowsOf(rank)) {
    EXPECT_EQ(window.inputUs, std::nullopt);
  }
}

TEST(MonitorEvidence, onceThereWasAFetchAWindowWithoutOneHasNoInputTime) {
  SimulatedRank rank;
  rank.steps(10);
  rank.recorder->fetched({rank.clock.now(), rank.clock.now() + ms(4)});
  rank.steps(20);
  const auto windows = windowsOf(rank);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows[1].inputUs, 4'000U);
  EXPECT_EQ(windows[2].inputUs, 0U);
}

TEST(MonitorEvidence, fetchOfTheNextStepIsNotTheLast) {
  // The monitor, which may be slow, hears of both fetches before it gets to the end of the first step.
  SimulatedRank rank({.window = 1});
  const auto twoSteps = [&rank](double firstMs, double secondMs) {
    const Instant begin = rank.clock.now();
    rank.recorder->fetched({begin, begin + ms(firstMs)});
    rank.recorder->fetched({begin + ms(30), begin + ms(30 + secondMs)});
    rank.steps(2);
  };
  twoSteps(1, 2);
  twoSteps(3, 4);
  const auto windows = windowsOf(rank);
  ASSERT_EQ(windows.size(), 4U);
  EXPECT_EQ(windows[1].inputUs, 2'000U);
  EXPECT_EQ(windows[2].inputUs, 3'000U);
  EXPECT_EQ(windows[3].inputUs, 4'000U);
}

// ---- The training thread ----

TEST(MonitorEvidence, windowTellsTheDifferenceOfTwoReadingsAndTheFirstHasNone) {
  FakeThread thread;
  SimulatedRank rank(thread.options());
  rank.recorder->setTrainingThread(kThread);
  thread.steps(rank, 40, 20, 3);
  const auto windows = windowsOf(rank);
  ASSERT_EQ(windows.size(), 4U);
  EXPECT_EQ(windows[0].cpuUs, std::nullopt);
  EXPECT_EQ(windows[0].runDelayUs, std::nullopt);
  for (const std::size_t i : {1U, 2U}) {
    EXPECT_EQ(windows[i].cpuUs, 200'000U);
    EXPECT_EQ(windows[i].runDelayUs, 30'000U);
  }
  // The end of a step is known when the next begins, so each reading but the last is of one step more.
  EXPECT_EQ(windows[3].cpuUs, 180'000U);
}

TEST(MonitorEvidence, threadThatIsNotKnownIsNotAskedAfter) {
  FakeThread thread;
  SimulatedRank rank(thread.options());
  thread.steps(rank, 20, 20, 3);
  EXPECT_EQ(thread.asked, 0);
  EXPECT_EQ(windowsOf(rank).back().cpuUs, std::nullopt);
}

TEST(MonitorEvidence, thinnedWindowsHaveTheEvidenceOfTheirOwnSteps) {
  FakeThread thread;
  SimulatedRank rank(thread.options());
  rank.recorder->setTrainingThread(kThread);
  thread.steps(rank, 2000, 2, 1, 5);  // 20 windows a second
  const auto windows = windowsOf(rank);
  ASSERT_GT(windows.back().stride, 1U);
  EXPECT_EQ(thread.asked, 200) << "once a window, sent or not";
  for (const auto& window : windows) {
    if (window.firstStep > 0) {
      EXPECT_EQ(window.cpuUs, 20'000U) << "window of step " << window.firstStep;
    }
  }
}

TEST(MonitorEvidence, readingThatIsMissingCostsTheWindowsOnBothSidesOfIt) {
  FakeThread thread;
  SimulatedRank rank(thread.options());
  rank.recorder->setTrainingThread(kThread);
  thread.steps(rank, 25, 20, 3);
  const auto kept = std::exchange(thread.totals, std::nullopt);
  rank.steps(10);
  thread.totals = kept;
  thread.steps(rank, 20, 20, 3);
  const auto windows = windowsOf(rank);
  ASSERT_EQ(windows.size(), 6U);
  EXPECT_EQ(windows[1].cpuUs, 200'000U);
  EXPECT_FALSE(windows[2].cpuUs);
  EXPECT_FALSE(windows[3].cpuUs);
  EXPECT_EQ(windows[4].cpuUs, 200'000U);
}

// ---- What else is counted ----

TEST(MonitorEvidence, windowTellsWhatWasCountedSinceTheReadingBefore) {
  FakeThread thread;
  SimulatedRank rank(thread.options());
  rank.recorder->setTrainingThread(kThread);
  thread.counters[OsCounter::kReadBytes] = 1'000'000;
  for (int step = 0; step < 30; ++step) {
    *thread.counters[OsCounter::kReadBytes] += 50;
    thread.steps(rank, 1, 20, 3);
  }
  const auto windows = windowsOf(rank);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows[0].os, OsCounters{}) << "there is no reading before the first";
  EXPECT_EQ(windows[1].os[OsCounter::kReadBytes], 500U);
  EXPECT_EQ(windows[1].os[OsCounter::kMajorFaults], std::nullopt) << "not counted here";
}

TEST(MonitorEvidence, ofManyWindowsASecondSomeTellWhatWasCountedInTheirOwnSteps) {
  FakeThread thread;
  thread.counters[OsCounter::kMajorFaults] = 0;
  SimulatedRank rank(thread.options());
  rank.recorder->setTrainingThread(kThread);
  for (int step = 0; step < 2000; ++step) {
    ++*thread.counters[OsCounter::kMajorFaults];
    thread.steps(rank, 1, 2, 1, 20);  // 5 windows a second: each is sent
  }
  int counted = 0;
  for (const auto& window : windowsOf(rank)) {
    const auto faults = window.os[OsCounter::kMajorFaults];
    EXPECT_EQ(window.stride, 1U);
    if (window.firstStep > 100) {
      EXPECT_EQ(faults.has_value(), window.firstStep % 80 == 0) << window.firstStep;
      EXPECT_EQ(faults.value_or(10), 10U);
      counted += faults ? 1 : 0;
    }
  }
  EXPECT_EQ(counted, 23);
}

TEST(MonitorEvidence, countersAreToldWhereTheThreadsTimesAreNotKept) {
  FakeThread thread;
  thread.totals = std::nullopt;
  thread.counters[OsCounter::kRetransmits] = 5;
  SimulatedRank rank(thread.options());
  rank.recorder->setTrainingThread(kThread);
  rank.steps(30);
  const auto windows = windowsOf(rank);
  EXPECT_EQ(windows[1].cpuUs, std::nullopt);
  EXPECT_EQ(windows[1].os[OsCounter::kRetransmits], 0U);
}

TEST(MonitorEvidence, withoutAnyoneToAskNothingIsMeasured) {
  SimulatedRank rank;
  rank.recorder->setTrainingThread(kThread);
  rank.steps(20);
  EXPECT_EQ(windowsOf(rank).back().cpuUs, std::nullopt);
}

}  // namespace
}  // namespace straggler
