// LargeJob: the frames of a job of thousands of ranks, as they would come in, cheap enough to be made for each window.
//
// Eight ranks a host, each host with a clock of its own and a group of its own (as tensor parallel has), ranks of equal place
// in their host in one group (as data parallel has), and one group of all. In each window a rank tells its steps, with their
// evidence, and its arrivals at some operations of each of its groups.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "backend/exchange/messages.h"
#include "tests/fakes/operations.h"
#include "tests/fakes/ranks.h"

namespace straggler {

struct LargeJob {
  static constexpr int kRanksAHost = 8;

  int ranks = 8192;                // a multiple of kRanksAHost
  int steps = 10;                  // a window
  std::uint64_t operations = 5;    // of each group, whose arrivals a rank tells of in a window
  int slow = 0;                    // rank
  std::int64_t slowFrom = 1000;    // window from which on it is 6 ms late a step
  std::int64_t silentFrom = 1000;  // window from which on the last rank tells nothing

  std::vector<int> members() const { return every(1, 0, ranks); }

  std::vector<GroupInfo> groups() const {
    std::vector<GroupInfo> all{{"world", "default_pg", "nccl", members()}};
    for (int host = 0; host < ranks / kRanksAHost; ++host) {
      all.push_back({nameOfHost(host), "tensor parallel", "nccl", every(1, host * kRanksAHost, kRanksAHost)});
    }
    for (int place = 0; place < kRanksAHost; ++place) {
      all.push_back({nameOfPlace(place), "data parallel", "nccl", every(kRanksAHost, place, ranks / kRanksAHost)});
    }
    return all;
  }

  // What comes in before the first window: who the ranks are, and their groups, each told by its first rank.
  std::vector<Frame> hellos() const {
    std::vector<Frame> frames;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string host = "host-" + std::to_string(rank / kRanksAHost) + ".cluster.example";
      frames.push_back({rank, {RankHello{host, 1000 + rank, "boot and time namespace of " + host}}});
    }
    for (auto& group : groups()) {
      frames.at(static_cast<std::size_t>(group.ranks.front())).messages.emplace_back(std::move(group));
    }
    return frames;
  }

  // In the order of rank, as when all begin at once.
  std::vector<Frame> window(std::int64_t index) const {
    std::vector<Frame> frames;
    for (int rank = 0; rank < ranks && (rank < ranks - 1 || index < silentFrom); ++rank) {
      frames.push_back({rank, {stepsOf(rank, index), arrivalsOf(rank, index)}});
    }
    return frames;
  }

 private:
  static std::string nameOfHost(int host) { return "tp-" + std::to_string(host); }
  static std::string nameOfPlace(int place) { return "dp-" + std::to_string(place); }

  // `count` ranks from `first` on, `stride` apart.
  static std::vector<int> every(int stride, int first, int count) {
    std::vector<int> some(static_cast<std::size_t>(count));
    std::iota(some.begin(), some.end(), 0);
    std::transform(some.begin(), some.end(), some.begin(), [=](int i) { return first + stride * i; });
    return some;
  }

  StepWindow stepsOf(int rank, std::int64_t index) const {
    const auto count = static_cast<std::uint64_t>(steps);
    StepWindow window{index * steps,  1, StepsFoundBy::kGraphTask, {}, 100'000 * count, 1000 * count,
                      80'000 * count, 10};
    for (std::int64_t step = window.firstStep; step < window.firstStep + steps; ++step) {
      const double late = rank == slow && index >= slowFrom ? 6000 : 0;
      window.selfUs.push_back(static_cast<std::uint32_t>(90'000 + 500 * noise(rank, step) + late));
    }
    return window;
  }

  // Each host's clock is an hour off the one before.
  ArrivalSamples arrivalsOf(int rank, std::int64_t index) const {
    const int host = rank / kRanksAHost;
    ArrivalSamples samples;
    for (std::uint64_t i = 0; i < operations; ++i) {
      const std::uint64_t sequence = static_cast<std::uint64_t>(index) * operations + i + 100;
      const double begin = 1e3 * static_cast<double>(index) + 100 * static_cast<double>(i) + 3.6e6 * host;
      const double arrival = begin + std::abs(noise(rank, static_cast<std::int64_t>(sequence)));
      for (const auto& name : {std::string("world"), nameOfHost(host), nameOfPlace(rank % kRanksAHost)}) {
        samples.operations.push_back({{groupId(name), sequence, OpKind::kAllReduce}, at(arrival), at(begin + 20)});
      }
    }
    return samples;
  }
};

}  // namespace straggler
