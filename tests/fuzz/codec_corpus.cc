// Writes the frames that the codec's fuzzer begins with into a folder, a file each: codec_corpus FOLDER.
//
// Real ones: what the monitors of simulated ranks sent, in jobs that differ in the length of a step, in buckets and in
// what a window holds; and those of every message at its limits. The same at every run, so a difference is a change of
// the codec.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "backend/exchange/codec.h"
#include "tests/fakes/simulated_rank.h"

namespace straggler {
namespace {

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  void add(const std::string& name, const Frame& frame) {
    const auto bytes = encode(frame);
    std::ofstream file(folder_ / name, std::ios::binary);
    for (const std::uint8_t byte : bytes) {
      file.put(static_cast<char>(byte));
    }
    complete_ = complete_ && file.flush().good();
  }
  bool complete() const { return complete_; }

 private:
  std::filesystem::path folder_;
  bool complete_ = true;
};

struct Job {
  std::string name;
  SimulatedRank::Options rank;
  double stepMs = 30;
  int buckets = 4;
};

// One rank of each job, its first frames and its last.
void addJob(Corpus& corpus, Job job) {
  constexpr std::size_t kFirst = 4;
  SimulatedRank rank(std::move(job.rank));
  rank.steps(60, job.stepMs, job.buckets);
  rank.finish();
  const auto& sent = rank.exchange->sent;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (i < kFirst || i + 1 == sent.size()) {
      corpus.add(job.name + "-" + std::to_string(i), sent[i]);
    }
  }
}

void addJobs(Corpus& corpus) {
  addJob(corpus, {"steps-of-30-ms", {}, 30, 4});
  addJob(corpus, {"steps-of-2-ms", {}, 2, 1});
  addJob(corpus, {"many-buckets", {}, 60, 20});
  addJob(corpus, {"steps-of-a-second", {}, 1000, 2});
  addJob(corpus, {"windows-of-3", {.rank = 7, .group = {"12", "pair", "nccl", {7, 4095}}, .window = 3}, 20, 2});
}

// One message a file, with its fields at both ends of what they can be.
void addLimits(Corpus& corpus) {
  constexpr auto kLargest = std::numeric_limits<std::uint64_t>::max();
  const std::string longest(kMaxStringBytes, 'x');
  corpus.add("empty", {});
  corpus.add("hello-empty", {0, {RankHello{}}});
  corpus.add("hello-long", {1, {RankHello{longest, -1, "\xc3\xa4"}}});
  corpus.add("group-empty", {0, {GroupInfo{}}});
  corpus.add("group-large-ranks", {0, {GroupInfo{"0", "", "gloo", {0, std::numeric_limits<int>::max()}}}});
  corpus.add("window-empty", {0, {StepWindow{}}});
  StepWindow window{.firstStep = std::int64_t{1} << 48, .foundBy = StepsFoundBy::kTime, .durationUs = kLargest};
  window.selfUs = {0, std::numeric_limits<std::uint32_t>::max()};
  corpus.add("window-large-values", {0, {window}});
  window.inputUs = 0;
  window.cpuUs = kLargest;
  corpus.add("window-some-evidence", {0, {window}});
  window.runDelayUs = 1;
  corpus.add("window-all-evidence", {0, {window}});
  corpus.add("samples-empty", {0, {ArrivalSamples{}}});
  ArrivalSamples samples{2, {}};
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
    const double time = kind % 2 == 0 ? 1e6 : -1e6;
    samples.operations.push_back({{9, kind % 3 == 0 ? kLargest : kind, static_cast<OpKind>(kind)}, at(time), {}});
    samples.operations.back().completed = kind % 2 == 0 ? std::optional(at(time + 1)) : std::nullopt;
  }
  corpus.add("samples-every-kind", {std::numeric_limits<int>::max(), {samples}});
  corpus.add("counters-large", {0, {RankCounters{kLargest, kLargest, kLargest, kLargest, true}}});
  corpus.add("one-of-each", {3,
                             {RankHello{"h", 1, "c"}, GroupInfo{"0", "d", "gloo", {0, 3}}, window, samples,
                              RankCounters{1, 2, 3, 4, false}}});
}

}  // namespace
}  // namespace straggler

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: codec_corpus FOLDER\n", stderr);
    return 2;
  }
  straggler::Corpus corpus(words[1]);
  straggler::addJobs(corpus);
  straggler::addLimits(corpus);
  return corpus.complete() ? 0 : 1;
}
