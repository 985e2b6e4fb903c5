// What one reading of the operating system's counters costs the monitor's thread, once a window; and its parts.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include <benchmark/benchmark.h>

#include "backend/session/os_account.h"

namespace straggler {
namespace {

// As many children as that, which sleep: the workers of a DataLoader.
class Workers {
 public:
  explicit Workers(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const pid_t id = fork();
      if (id == 0) {
        pause();
        _exit(0);
      }
      ids_.push_back(id);
    }
  }
  ~Workers() {
    for (const pid_t id : ids_) {
      kill(id, SIGKILL);
      waitpid(id, nullptr, 0);
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

 private:
  std::vector<pid_t> ids_;
};

void readingOfAWindow(benchmark::State& state) {
  const Workers workers(state.range(0));
  OsAccount account;
  std::size_t known = 0;
  for (auto _ : state) {
    const OsTotals totals = account.totals(gettid());
    known = 0;
    for (const OsCounter counter : allOsCounters()) {
      known += totals.counters[counter] ? 1 : 0;
    }
  }
  state.counters["known"] = static_cast<double>(known);
}
BENCHMARK(readingOfAWindow)->ArgName("workers")->Arg(0)->Arg(2)->Arg(4)->Arg(16);

void readingOfTheThreadsTimesAlone(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(threadTimes(gettid()));
  }
}
BENCHMARK(readingOfTheThreadsTimesAlone);

}  // namespace
}  // namespace straggler
