// Jobs of thousands of ranks: the memory that the model holds, and how its work grows with the ranks. Counted, not timed by
// a clock on the wall. A program of its own, since it replaces operator new.
#include "tests/fakes/large_job.h"

#include <ctime>

#include <gtest/gtest.h>

#include "backend/detect/arrival_table.h"
#include "backend/detect/job_model.h"
#include "tests/fakes/counting_new.h"

namespace straggler {
namespace {

// 8,192 ranks in 100 MB.
constexpr double kBytesARank = 100e6 / 8192;

struct Held {
  double peakBytes = 0;    // a rank
  double allocations = 0;  // a rank, by the last window
  std::vector<int> named;
};

// Long enough that all that is kept of the past is full; the frames' own memory is not counted.
Held feed(const LargeJob& job, std::int64_t windows) {
  CountingNew::begin();
  JobModel model(job.members(), job.steps);
  std::ptrdiff_t held = CountingNew::liveBytes();
  std::ptrdiff_t peak = held;
  Held result;
  for (std::int64_t index = -1; index < windows; ++index) {
    const auto frames = index < 0 ? job.hellos() : job.window(index);
    CountingNew::begin();
    for (const auto& frame : frames) {
      model.apply(frame);
    }
    peak = std::max(peak, held + CountingNew::peakBytes());
    held += CountingNew::liveBytes();
    result.allocations = static_cast<double>(CountingNew::allocations()) / job.ranks;
  }
  result.peakBytes = static_cast<double>(peak) / job.ranks;
  result.named = model.verdict().ranks;
  return result;
}

LargeJob jobOf(int ranks) { return {.ranks = ranks, .slow = ranks / 2, .slowFrom = 60, .silentFrom = 66}; }

TEST(LargeJob, modelOfManyRanksFitsIntoItsShareOf100Megabytes) {
  const Held held = feed(jobOf(1024), 80);
  EXPECT_LT(held.peakBytes, kBytesARank) << "with rows that wait for a silent rank, and every series full";
  EXPECT_EQ(held.named, std::vector<int>{512});
}

TEST(LargeJob, memoryAndAllocationsOfARankDoNotGrowWithTheRanks) {
  const Held few = feed(jobOf(128), 70);
  const Held many = feed(jobOf(1024), 70);
  EXPECT_LT(many.peakBytes, 1.15 * few.peakBytes);
  EXPECT_LT(many.allocations, 1.15 * few.allocations);
}

TEST(LargeJob, windowsOf8192RanksFitInto100Megabytes) {
  LargeJob job{.operations = 0, .slow = 4096, .slowFrom = 3, .silentFrom = 5};
  const Held held = feed(job, 24);
  EXPECT_LT(held.peakBytes, kBytesARank);
  EXPECT_EQ(held.named, std::vector<int>{4096});
}

TEST(LargeJob, groupsThatListMoreRanksThanAnyJobHasAreNotKept) {
  const LargeJob job{.ranks = 1024};
  JobModel model(job.members(), 10);
  CountingNew::begin();
  for (int i = 0; i < 4096; ++i) {
    model.apply({0, {GroupInfo{"group " + std::to_string(i), "", "gloo", job.members()}}});
  }
  EXPECT_EQ(model.groups().size(), 1024U) << "a million members in all";
  EXPECT_LT(CountingNew::liveBytes(), 6'000'000);
}

// ---- Work ----

double processorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Processor time that one of `ranks` samples of an operation costs, the least of five.
double secondsASample(int ranks) {
  double least = 1;
  for (int repeat = 0; repeat < 5; ++repeat) {
    ArrivalTable table;
    table.setGroupSize(1, static_cast<std::size_t>(ranks));
    const double begun = processorSeconds();
    std::size_t complete = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      complete += table.add(rank, {{1, 5, OpKind::kAllReduce}, at(rank), at(ranks)}).has_value() ? 1 : 0;
    }
    least = std::min(least, (processorSeconds() - begun) / ranks);
    EXPECT_EQ(complete, 1U);
  }
  return least;
}

TEST(LargeJob, aSampleOfAnOperationOfManyRanksCostsWhatOneOfFewDoes) {
  EXPECT_LT(secondsASample(1 << 15), 6 * secondsASample(1 << 9)) << "64 times as many ranks";
}

double secondsARank(int ranks) {
  const LargeJob job{.ranks = ranks, .operations = 1};
  JobModel model(job.members(), job.steps);
  for (const auto& frame : job.hellos()) {
    model.apply(frame);
  }
  double least = 1;
  for (std::int64_t index = 0; index < 5; ++index) {
    const auto frames = job.window(index);
    const double begun = processorSeconds();
    for (const auto& frame : frames) {
      model.apply(frame);
    }
    least = std::min(least, (processorSeconds() - begun) / ranks);
  }
  return least;
}

TEST(LargeJob, aWindowOfManyRanksCostsARankWhatOneOfFewDoes) {
  EXPECT_LT(secondsARank(8192), 6 * secondsARank(256)) << "32 times as many ranks";
}

}  // namespace
}  // namespace straggler
