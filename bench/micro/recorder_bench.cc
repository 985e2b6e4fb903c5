// Host cost of recording one operation, as the training thread pays it: every clock read and every call of the recorder
// that the observer makes for an asynchronous operation that is waited for. See README.md for the question and results.
//
// Argument `batch`: operations between two reads of the bench's own clock. With 1, every operation is timed by itself, and
// the percentiles are those of single operations, the cost of one clock read of the bench's included.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "backend/observe/recorder.h"

namespace straggler {
namespace {

constexpr GroupId kGroup = 1;
constexpr std::size_t kDrainEvery = 4096;
constexpr std::size_t kWorkBytes = std::size_t{8} << 20;  // more than a core's own caches hold

Operation bucketOf(int graphTask) {
  Operation operation;
  operation.key = {kGroup, 0, OpKind::kAllReduce};
  operation.method = "allreduce";
  operation.dtype = "Float";
  operation.bytes = std::uint64_t{25} << 20;
  operation.asynchronous = true;
  operation.graphTask = graphTask;
  return operation;
}

// As the observer does: arrival, issue, wait, completion, release, and the Work let go of.
void recordWaited(Recorder& recorder, const SteadyClock& clock) {
  Operation operation = bucketOf(kNoGraphTask);
  operation.arrival = {clock.now(), StampSource::kHost};
  const Ticket ticket = recorder.enter(operation);
  recorder.issued(ticket, clock.now());
  recorder.waiting(ticket, clock.now());
  recorder.completed(ticket, {clock.now(), StampSource::kFuture}, false);
  recorder.released(ticket, {clock.now(), StampSource::kWait});
  recorder.abandoned(ticket);
}

// A backward of `buckets` operations, and its end.
void recordBackward(Recorder& recorder, const SteadyClock& clock, int graphTask, std::int64_t buckets) {
  for (std::int64_t i = 0; i < buckets; ++i) {
    Operation operation = bucketOf(graphTask);
    operation.arrival = {clock.now(), StampSource::kHost};
    const Ticket ticket = recorder.enter(operation);
    recorder.issued(ticket, clock.now());
    recorder.completed(ticket, {clock.now(), StampSource::kFuture}, false);
  }
  recorder.graphTaskReleased(graphTask, clock.now());
}

// Times of single batches: the iteration's time, and percentiles as counters.
class Percentiles {
 public:
  explicit Percentiles(benchmark::State& state, std::int64_t operations) : state_(state), operations_(operations) {
    nanoseconds_.reserve(static_cast<std::size_t>(state.max_iterations));
  }
  ~Percentiles() {
    state_.counters["p50_ns"] = at(0.50);
    state_.counters["p99_ns"] = at(0.99);
  }
  Percentiles(const Percentiles&) = delete;
  Percentiles& operator=(const Percentiles&) = delete;

  template <class Work>
  void time(Work&& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    state_.SetIterationTime(passed.count());
    nanoseconds_.push_back(static_cast<float>(passed.count() * 1e9 / static_cast<double>(operations_)));
  }

 private:
  double at(double q) {
    const auto place =
        nanoseconds_.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(nanoseconds_.size() - 1));
    std::nth_element(nanoseconds_.begin(), place, nanoseconds_.end());
    return *place;
  }

  benchmark::State& state_;
  std::int64_t operations_;
  std::vector<float> nanoseconds_;
};

// Between measurements, from time to time, so that the ring never fills up.
void emptyRing(Recorder& recorder, std::vector<Operation>& sink) {
  if (recorder.collectives() % kDrainEvery == 0) {
    sink.clear();
    recorder.drainAll(sink);
  }
}

// The training thread alone, its caches warm.
void recordingAlone(benchmark::State& state) {
  Recorder recorder;
  recorder.addGroup(kGroup);
  const SteadyClock clock;
  const std::int64_t batch = state.range(0);
  Percentiles percentiles(state, batch);
  std::vector<Operation> sink;
  for (auto _ : state) {
    percentiles.time([&] {
      for (std::int64_t i = 0; i < batch; ++i) {
        recordWaited(recorder, clock);
      }
    });
    emptyRing(recorder, sink);
  }
}
BENCHMARK(recordingAlone)->ArgName("batch")->Arg(1)->Arg(64)->UseManualTime();

// As in training, where a step's work lies between two collectives: nothing of the recorder is in the core's own caches.
void recordingWithColdCaches(benchmark::State& state) {
  Recorder recorder;
  recorder.addGroup(kGroup);
  const SteadyClock clock;
  std::vector<unsigned char> work(kWorkBytes);
  Percentiles percentiles(state, 1);
  for (auto _ : state) {
    for (std::size_t i = 0; i < work.size(); i += 64) {
      ++work[i];
    }
    benchmark::DoNotOptimize(work.data());
    benchmark::ClobberMemory();
    percentiles.time([&] { recordWaited(recorder, clock); });
  }
}
BENCHMARK(recordingWithColdCaches)->Iterations(5000)->UseManualTime();

// Beside a thread that empties the ring every millisecond, as a monitor does while it polls: the lock is contended.
void recordingBesideAMonitor(benchmark::State& state) {
  Recorder recorder;
  recorder.addGroup(kGroup);
  const SteadyClock clock;
  const std::int64_t batch = state.range(0);
  std::atomic<bool> stop{false};
  std::thread monitor([&] {
    std::vector<Operation> operations;
    while (!stop) {
      do {
        operations.clear();
        recorder.drain(operations, 512);
      } while (operations.size() == 512);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  {
    Percentiles percentiles(state, batch);
    for (auto _ : state) {
      percentiles.time([&] {
        for (std::int64_t i = 0; i < batch; ++i) {
          recordWaited(recorder, clock);
        }
      });
    }
  }
  stop = true;
  monitor.join();
  if (recorder.dropped() > 0) {
    state.SkipWithError("the ring was full: what was timed is a refusal");
  }
}
BENCHMARK(recordingBesideAMonitor)->ArgName("batch")->Arg(1)->UseManualTime();

// DDP's buckets: the whole backward is timed, and its end is shared among its operations.
void recordingABackward(benchmark::State& state) {
  Recorder recorder;
  recorder.addGroup(kGroup);
  const SteadyClock clock;
  const std::int64_t buckets = state.range(0);
  Percentiles percentiles(state, buckets);
  std::vector<Operation> sink;
  int graphTask = 0;
  for (auto _ : state) {
    percentiles.time([&] { recordBackward(recorder, clock, ++graphTask, buckets); });
    emptyRing(recorder, sink);
  }
}
BENCHMARK(recordingABackward)->ArgName("buckets")->Arg(8)->Arg(64)->UseManualTime();

}  // namespace
}  // namespace straggler
