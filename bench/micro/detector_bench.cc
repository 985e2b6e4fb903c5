// Time of one window of all ranks through the detector: 100 windows of synthetic ranks, one of them slow from the 50th on.
// Counters: the longest window, and by how much the process's resident memory grew over the second half.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "backend/detect/job_model.h"
#include "tests/fakes/ranks.h"

namespace straggler {
namespace {

constexpr std::int64_t kWindows = 100;

double residentMegabytes() {
  long pages = 0;
  long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &pages, &resident) != 2) {
    resident = 0;
  }
  if (file != nullptr) {
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// The frames of all ranks for one window. A step's length does not matter here, so that of rank 0 stands for all.
std::vector<Frame> framesOf(int ranks, std::int64_t window) {
  std::vector<Frame> frames;
  for (int rank = 0; rank < ranks; ++rank) {
    StepWindow message{10 * window, 1, StepsFoundBy::kGraphTask, {}, 340'000};
    for (std::int64_t step = 10 * window; step < 10 * window + 10; ++step) {
      const double late = rank == ranks / 2 && window >= kWindows / 2 ? 6000 : 0;
      message.selfUs.push_back(static_cast<std::uint32_t>(25'000 + 500 * noise(rank, step) + late));
    }
    message.inputUs = 1000;
    message.cpuUs = 100'000;
    message.runDelayUs = 100;
    frames.push_back({rank, {message}});
  }
  return frames;
}

void windowOfAllRanks(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  std::vector<int> members;
  for (int rank = 0; rank < ranks; ++rank) {
    members.push_back(rank);
  }
  double longest = 0;
  double grown = 0;
  for (auto _ : state) {
    JobModel model(members, 10);
    double total = 0;
    double half = 0;
    for (std::int64_t window = 1; window <= kWindows; ++window) {
      const auto frames = framesOf(ranks, window);
      half = window == kWindows / 2 ? residentMegabytes() : half;
      const auto begun = std::chrono::steady_clock::now();
      for (const auto& frame : frames) {
        model.apply(frame);
      }
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      longest = std::max(longest, seconds);
      total += seconds;
    }
    grown = residentMegabytes() - half;
    if (model.verdict().ranks != std::vector<int>{ranks / 2}) {
      state.SkipWithError(("the slow rank was not named: " + model.verdict().reason).c_str());
      return;
    }
    state.SetIterationTime(total / kWindows);
  }
  state.counters["longest_ms"] = 1e3 * longest;
  state.counters["grown_mb"] = grown;
  state.counters["resident_mb"] = residentMegabytes();
}
BENCHMARK(windowOfAllRanks)
    ->ArgName("ranks")
    ->Arg(4)
    ->Arg(64)
    ->Arg(1024)
    ->Arg(8192)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace straggler
