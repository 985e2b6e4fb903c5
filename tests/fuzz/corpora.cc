// Writes what the fuzzers begin with into a folder: corpora FOLDER makes FOLDER/<fuzzer>/<name>, a file each.
//
// Frames are real ones, what the monitors of simulated ranks sent, in jobs that differ in the length of a step, in buckets
// and in what a window holds; and those of every message at its limits. The same at every run, so a difference is a change
// of what is decoded.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/exchange/codec.h"
#include "backend/mitigate/control_codec.h"
#include "tests/fakes/operations.h"
#include "tests/fakes/ranks.h"
#include "tests/fakes/simulated_rank.h"
#include "tests/fakes/slot_operations.h"

namespace straggler {
namespace {

using Bytes = std::vector<std::uint8_t>;

class Corpora {
 public:
  explicit Corpora(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void add(const std::string& fuzzer, const std::string& name, std::string_view bytes) {
    std::filesystem::create_directories(folder_ / fuzzer);
    std::ofstream file(folder_ / fuzzer / name, std::ios::binary);
    complete_ = complete_ && file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush().good();
  }
  void add(const std::string& fuzzer, const std::string& name, const Bytes& bytes) {
    add(fuzzer, name, std::string(bytes.begin(), bytes.end()));
  }
  bool complete() const { return complete_; }

 private:
  std::filesystem::path folder_;
  bool complete_ = true;
};

void append(Bytes& to, std::uint64_t number, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    to.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
  }
}

// Two bytes of length, and the frame.
void append(Bytes& to, const Frame& frame) {
  const auto bytes = encode(frame);
  append(to, bytes.size(), 2);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// ---- Frames ----

struct Job {
  std::string name;
  SimulatedRank::Options rank;
  double stepMs = 30;
  int buckets = 4;
};

// One rank of each job, its first frames and its last.
void addJob(Corpora& corpora, Job job) {
  constexpr std::size_t kFirst = 4;
  SimulatedRank rank(std::move(job.rank));
  rank.steps(60, job.stepMs, job.buckets);
  rank.finish();
  const auto& sent = rank.exchange->sent;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (i < kFirst || i + 1 == sent.size()) {
      corpora.add("codec", job.name + "-" + std::to_string(i), encode(sent[i]));
    }
  }
}

void addJobs(Corpora& corpora) {
  addJob(corpora, {"steps-of-30-ms", {}, 30, 4});
  addJob(corpora, {"steps-of-2-ms", {}, 2, 1});
  addJob(corpora, {"many-buckets", {}, 60, 20});
  addJob(corpora, {"steps-of-a-second", {}, 1000, 2});
  addJob(corpora, {"windows-of-3", {.rank = 7, .group = {"12", "pair", "nccl", {7, 4095}}, .window = 3}, 20, 2});
}

// One message a file, with its fields at both ends of what they can be.
void addLimits(Corpora& corpora) {
  const auto add = [&corpora](const std::string& name, const Frame& frame) {
    corpora.add("codec", name, encode(frame));
    Bytes unchanged;
    append(unchanged, frame);
    corpora.add("record", name, unchanged);
  };
  constexpr auto kLargest = std::numeric_limits<std::uint64_t>::max();
  const std::string longest(kMaxStringBytes, 'x');
  add("empty", {});
  add("hello-empty", {0, {RankHello{}}});
  add("hello-long", {1, {RankHello{longest, -1, "\xc3\xa4"}}});
  add("group-empty", {0, {GroupInfo{}}});
  add("group-large-ranks", {0, {GroupInfo{"0", "", "gloo", {0, std::numeric_limits<int>::max()}}}});
  add("window-empty", {0, {StepWindow{}}});
  StepWindow window{.firstStep = std::int64_t{1} << 48, .foundBy = StepsFoundBy::kTime, .durationUs = kLargest};
  window.selfUs = {0, std::numeric_limits<std::uint32_t>::max()};
  add("window-large-values", {0, {window}});
  window.inputUs = 0;
  window.cpuUs = kLargest;
  add("window-some-evidence", {0, {window}});
  window.runDelayUs = 1;
  add("window-all-evidence", {0, {window}});
  for (const OsCounter counter : allOsCounters()) {
    window.os[counter] = static_cast<std::size_t>(counter) % 2 == 0 ? kLargest : static_cast<std::uint64_t>(counter);
  }
  add("window-all-counters", {0, {window}});
  add("samples-empty", {0, {ArrivalSamples{}}});
  ArrivalSamples samples{2, {}};
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
    const double time = kind % 2 == 0 ? 1e6 : -1e6;
    samples.operations.push_back({{9, kind % 3 == 0 ? kLargest : kind, static_cast<OpKind>(kind)}, at(time), {}});
    samples.operations.back().sizeClass = kind == 0 ? 64 : static_cast<std::uint8_t>(kind);
    samples.operations.back().completed = kind % 2 == 0 ? std::optional(at(time + 1)) : std::nullopt;
  }
  add("samples-every-kind", {std::numeric_limits<int>::max(), {samples}});
  add("counters-large", {0, {RankCounters{kLargest, kLargest, kLargest, kLargest, true}}});
  add("clock-empty", {0, {ClockReading{}}});
  add("clock-far", {0, {ClockReading{at(1e12), at(1e12 + 1), at(-1e12), at(-1e12 + 1)}}});
  add("mitigation-empty", {0, {MitigationSummary{}}});
  add("mitigation-large",
      {0,
       {MitigationSummary{true, std::string(kMaxModeBytes, 'm'), std::string(kMaxClauseBytes, 'x'), kLargest, kLargest,
                          kLargest, kLargest, kLargest, kLargest, kLargest, kLargest}}});
  add("program-empty", {0, {RankProgram{}}});
  RankProgram program;
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
    program.uses.push_back({std::numeric_limits<GroupId>::max(), static_cast<OpKind>(kind)});
  }
  add("program-every-kind", {0, {program}});
  add("one-of-each", {3,
                      {RankHello{"h", 1, "c"}, GroupInfo{"0", "d", "gloo", {0, 3}}, window, samples,
                       MitigationSummary{true, "carry", "\xc3\xa4", 1, 2, 3, 4, 5, 6, 7, 8},
                       RankCounters{1, 2, 3, 4, false}, program, ClockReading{at(10'001), at(10'002), at(1), at(2)}}});
}

// Times at both ends of what a line of a record can say.
void addTimesFarApart(Corpora& corpora) {
  Bytes bytes;
  append(bytes,
         Frame{0, {ArrivalSamples{1, {{{9, 1, OpKind::kAllReduce}, {}, {}}, {{9, 2, OpKind::kAllReduce}, {}, {}}}}}});
  // The rank; how many are sampled; then group, number and time of each.
  for (const std::uint64_t change : std::vector<std::uint64_t>{0, 0, 0, 0, 1ULL << 63U, 0, 0, (1ULL << 63U) - 1}) {
    append(bytes, change, 8);
  }
  corpora.add("record", "times-far-apart", bytes);
}

// ---- Jobs for the model ----

// All ranks' frames, in the order in which a root would see them, after the job's options.
Bytes jobBytes(const SyntheticJob& job, Bytes options) {
  for (const Frame& frame : job.frames()) {
    append(options, frame);
  }
  return options;
}

void addModels(Corpora& corpora) {
  SyntheticJob job{.ranks = 3, .steps = 60};
  job.selfMs = [](int rank, std::int64_t step) {
    return 25 + noise(rank, step) / 4 + (rank == 1 && step > 20 ? 9 : 0);
  };
  const auto window = static_cast<std::uint8_t>(job.window - 1);
  for (const auto& [name, rule] :
       {std::pair{"self-time", 0}, {"mean-multiple", 1}, {"moving-average", 2}, {"median", 3}}) {
    corpora.add("model", name, jobBytes(job, {2, window, static_cast<std::uint8_t>(rule), 0}));
  }
  Bytes arrivals = {1, window, 0, 12};
  for (int rank = 0; rank < 2; ++rank) {
    ArrivalSamples samples;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const double time = 10.0 * static_cast<double>(i) + rank;
      samples.operations.push_back({{groupId("0"), i, OpKind::kAllReduce}, at(time), at(time + 3), false, 21});
    }
    append(arrivals, {rank,
                      {RankHello{"host-\xff", 1, rank == 0 ? "a" : "b"}, GroupInfo{"0", "\x1b[2J", "gloo", {0, 1}},
                       samples, MitigationSummary{rank == 0, "carry", "\x1b[2J", 9, 8, 6, 0, 2, 12, 3, 99'000},
                       ClockReading{at(1), at(2), at(1), at(2)}, RankCounters{20, 0, 0, 0, true}}});
  }
  corpora.add("model", "two-clocks", arrivals);
}

// ---- Control messages ----

void addControl(Corpora& corpora) {
  const SlotRange range{3, {broadcastFrom(0), bucketOf(0)}};
  const auto add = [&corpora](const std::string& name, const ControlMessage& message) {
    corpora.add("control", name, encodeControl(message));
  };
  add("pending", PendingReport{2, true, range});
  add("caught-up", CaughtUp{2, 4, 600'000});
  add("refusal", Refusal{3, true});
  add("request", JoinRequest{range});
  add("request-next", JoinRequest{{2, {bucketOf(0)}}});
  add("behind", Behind{true, 0});
  add("behind-no-more", Behind{false, 600'000});
  add("reservation", Reservation{1, 3, true});
  add("announcement", Announcement{0, 3});
  add("acknowledgement", Acknowledgement{1, 3});
  add("go", Go{2, 3});
}

// ---- Text ----

void addTexts(Corpora& corpora) {
  corpora.add("settings", "all",
              "DIR=/tmp/records\nINTERCEPT=gloo,nccl\nINJECT=rank=1\nWINDOW=20\nRULE=median\nMULTIPLIER=2.5\n");
  corpora.add("settings", "mitigation",
              "MITIGATE=carry\nSTALENESS=8\nGRACE_MS=auto\nQUORUM=0.5\nFORCE_PARTICIPATION=/tmp/records\n");
  corpora.add("settings", "refused", "WINDOW=0\nRULE=mean\nMULTIPLIER=inf\nINTERCEPT=mpi\n");
  corpora.add("settings", "unknown", "WINDOWS=10\nWINDOW=1000\nWINDOW=1001\n");
  corpora.add("delay_rules", "every-field",
              "rank=-1 ms=0.5 probability=0.25 from=8 to=-1 every=3 seed=18446744073709551615\n");
  corpora.add("delay_rules", "two", "rank=2 ms=8.0 probability=1.0 from=0 to=90 every=1 seed=0\nrank=0 ms=1e3\n");
  corpora.add("delay_rules", "refused", "rank=x ms= every=0 from=-1 seed=-1 probability=nan to=9223372036854775808\n");
}

}  // namespace
}  // namespace straggler

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: corpora FOLDER\n", stderr);
    return 2;
  }
  straggler::Corpora corpora(words[1]);
  straggler::addJobs(corpora);
  straggler::addLimits(corpora);
  straggler::addTimesFarApart(corpora);
  straggler::addModels(corpora);
  straggler::addControl(corpora);
  straggler::addTexts(corpora);
  return corpora.complete() ? 0 : 1;
}
