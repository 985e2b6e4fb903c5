// Synthetic pipelines: the frames of the ranks of a job of several stages, each of which may have replicas. Rank r is stage
// r % stages of replica r / stages. Stages send in the world; the replicas of a stage reduce their gradients in "dp<stage>".
//
// A step takes as long as its slowest rank and `transferMs`. A stage may count its steps in parts of the job's: then each
// of its windows is of so many parts.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "backend/exchange/messages.h"
#include "tests/fakes/ranks.h"

namespace straggler {

struct SyntheticPipeline {
  int stages = 4;
  int replicas = 1;
  std::int64_t steps = 400;
  std::int64_t window = 10;
  double transferMs = 1;
  std::function<double(int, std::int64_t)> selfMs = [](int, std::int64_t) { return 25.0; };  // of (rank, step)
  std::function<int(int)> parts = [](int) { return 1; };                                     // of a stage

  int size() const { return stages * replicas; }
  std::vector<int> members() const { return SyntheticJob{.ranks = size()}.members(); }
  static GroupId world() { return groupId("world"); }
  GroupId replicasOf(int rank) const { return groupId("dp" + std::to_string(rank % stages)); }

  RankProgram program(int rank) const {
    RankProgram made{{{world(), OpKind::kSend}, {world(), OpKind::kRecv}}};
    if (replicas > 1) {
      made.uses.push_back({replicasOf(rank), OpKind::kAllReduce});
    }
    std::sort(made.uses.begin(), made.uses.end());
    return made;
  }

  std::vector<Frame> hellos() const {
    std::vector<Frame> all;
    for (int rank = 0; rank < size(); ++rank) {
      Frame frame{rank, {RankHello{"host-a", 1000 + rank, "clock-a"}}};
      if (rank == 0) {
        frame.messages.emplace_back(GroupInfo{"world", "", "gloo", members()});
      }
      if (replicas > 1 && rank < stages) {
        GroupInfo group{"dp" + std::to_string(rank), "", "gloo", {}};
        for (int member = rank; member < size(); member += stages) {
          group.ranks.push_back(member);
        }
        frame.messages.emplace_back(group);
      }
      frame.messages.emplace_back(program(rank));
      all.push_back(frame);
    }
    return all;
  }

  double stepMs(std::int64_t step) const {
    double slowest = 0;
    for (int rank = 0; rank < size(); ++rank) {
      slowest = std::max(slowest, selfMs(rank, step));
    }
    return slowest + transferMs;
  }

  // The rank's windows of the steps from `first` on, as many as its stage makes of them.
  std::vector<Frame> windowsOf(int rank, std::int64_t first) const {
    const int divisor = parts(rank % stages);
    std::vector<Frame> all;
    for (std::int64_t part = first * divisor; part < (first + window) * divisor; part += window) {
      StepWindow message{part, 1, StepsFoundBy::kOpPeriod, {}, 0};
      double lengthMs = 0;
      for (std::int64_t i = part; i < part + window; ++i) {
        message.selfUs.push_back(static_cast<std::uint32_t>(1e3 * selfMs(rank, i / divisor) / divisor));
        lengthMs += stepMs(i / divisor) / divisor;
      }
      message.durationUs = static_cast<std::uint64_t>(1e3 * lengthMs);
      all.push_back({rank, {message}});
    }
    return all;
  }

  // All windows, in the order of time.
  std::vector<Frame> windows() const {
    std::vector<Frame> all;
    for (std::int64_t first = 0; first < steps; first += window) {
      for (int rank = 0; rank < size(); ++rank) {
        for (auto& frame : windowsOf(rank, first)) {
          all.push_back(std::move(frame));
        }
      }
    }
    return all;
  }

  std::vector<Frame> frames() const {
    std::vector<Frame> all = hellos();
    for (auto& frame : windows()) {
      all.push_back(std::move(frame));
    }
    return all;
  }
};

}  // namespace straggler
