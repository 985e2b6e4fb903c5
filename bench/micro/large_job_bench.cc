// A window of 8,192 ranks through the model that the collector uses, with all that ranks of such a job tell: steps, evidence,
// groups by the hundred, arrivals on a thousand clocks. Time a window, and the memory that the model holds, counted by the
// allocator. A program of its own, since it replaces operator new.
#include <algorithm>
#include <ctime>
#include <string>

#include <benchmark/benchmark.h>

#include "backend/detect/job_model.h"
#include "tests/fakes/counting_new.h"
#include "tests/fakes/large_job.h"

namespace straggler {
namespace {

constexpr std::int64_t kWindows = 60;

// Of this thread on its processor: what else runs on the machine does not count.
double processorMilliseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

struct Cost {
  double totalMs = 0;
  double longestMs = 0;
  std::ptrdiff_t held = 0;  // bytes
  std::ptrdiff_t peak = 0;

  // Feeds frames, whose own memory is not counted.
  void feed(JobModel& model, const std::vector<Frame>& frames) {
    CountingNew::begin();
    const double begun = processorMilliseconds();
    for (const auto& frame : frames) {
      model.apply(frame);
    }
    const double milliseconds = processorMilliseconds() - begun;
    totalMs += milliseconds;
    longestMs = std::max(longestMs, milliseconds);
    peak = std::max(peak, held + CountingNew::peakBytes());
    held += CountingNew::liveBytes();
  }
};

// In the second half one rank is slow; in the last third the last rank is silent, and rows wait for it.
void windowOfALargeJob(benchmark::State& state) {
  LargeJob job{.ranks = static_cast<int>(state.range(0)), .operations = static_cast<std::uint64_t>(state.range(1))};
  job.slow = job.ranks / 2;
  job.slowFrom = kWindows / 2;
  job.silentFrom = kWindows * 2 / 3;
  for (auto _ : state) {
    Cost hellos;
    CountingNew::begin();
    JobModel model(job.members(), job.steps);
    hellos.held = CountingNew::liveBytes();
    hellos.feed(model, job.hellos());
    Cost cost{.held = hellos.held, .peak = hellos.peak};
    for (std::int64_t index = 0; index < kWindows; ++index) {
      cost.feed(model, job.window(index));
    }
    if (model.verdict().ranks != std::vector<int>{job.slow}) {
      state.SkipWithError(("the slow rank was not named: " + model.verdict().reason).c_str());
      return;
    }
    state.SetIterationTime(cost.totalMs / kWindows / 1e3);
    state.counters["longest_ms"] = cost.longestMs;
    state.counters["held_mb"] = static_cast<double>(cost.held) / 1e6;
    state.counters["peak_mb"] = static_cast<double>(cost.peak) / 1e6;
    state.counters["given_up"] = static_cast<double>(model.operationsGivenUp());
  }
}
BENCHMARK(windowOfALargeJob)
    ->ArgNames({"ranks", "operations"})
    ->Args({1024, 5})
    ->Args({8192, 0})
    ->Args({8192, 5})
    ->Args({8192, 20})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace straggler
