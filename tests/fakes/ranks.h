// Synthetic ranks: the frames that the ranks of a job would send, built from each rank's self time per step.
//
// All ranks do the same step together: it takes as long as the slowest rank's self time plus `transferMs`, and each waits
// for what it is faster. They share one clock and one group, "world".
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "backend/exchange/messages.h"

namespace straggler {

// Noise around zero with standard deviation 1, the same at every call for the same rank and step: the sum of four uniform
// numbers, which is near enough to a normal one.
inline double noise(int rank, std::int64_t step) {
  std::uint64_t state = static_cast<std::uint64_t>(step) * 8191 + static_cast<std::uint64_t>(rank);
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    state += 0x9E3779B97F4A7C15ULL;  // SplitMix64
    std::uint64_t hash = (state ^ (state >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    hash = (hash ^ (hash >> 27U)) * 0x94D049BB133111EBULL;
    sum += static_cast<double>((hash ^ (hash >> 31U)) >> 11U) * 0x1p-53 - 0.5;
  }
  return sum * std::sqrt(3.0);
}

struct SyntheticJob {
  int ranks = 4;
  std::int64_t steps = 300;
  std::int64_t window = 10;
  double transferMs = 1;
  // Self time in milliseconds of (rank, step).
  std::function<double(int, std::int64_t)> selfMs = [](int, std::int64_t) { return 25.0; };

  std::vector<int> members() const {
    std::vector<int> all;
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(rank);
    }
    return all;
  }

  GroupInfo group() const { return {"world", "default_pg", "gloo", members()}; }

  // What a rank says of itself, and of the group if it is the first of it.
  Frame hello(int rank) const {
    Frame frame{rank, {RankHello{"host-a", 1000 + rank, "clock-a"}}};
    if (rank == 0) {
      frame.messages.emplace_back(group());
    }
    return frame;
  }

  double stepMs(std::int64_t step) const {
    double slowest = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      slowest = std::max(slowest, selfMs(rank, step));
    }
    return slowest + transferMs;
  }

  // One window of one rank, beginning with `firstStep`.
  Frame stepWindow(int rank, std::int64_t firstStep) const {
    StepWindow message{firstStep, 1, StepsFoundBy::kGraphTask, {}, 0};
    double lengthMs = 0;
    for (std::int64_t step = firstStep; step < std::min(firstStep + window, steps); ++step) {
      message.selfUs.push_back(static_cast<std::uint32_t>(1e3 * selfMs(rank, step)));
      lengthMs += stepMs(step);
    }
    message.durationUs = static_cast<std::uint64_t>(1e3 * lengthMs);
    return {rank, {message}};
  }

  Frame last(int rank) const { return {rank, {RankCounters{static_cast<std::uint64_t>(steps), 0, 0, 0, true}}}; }

  // Everything, in the order of time.
  std::vector<Frame> frames() const {
    std::vector<Frame> all;
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(hello(rank));
    }
    for (std::int64_t first = 0; first < steps; first += window) {
      for (int rank = 0; rank < ranks; ++rank) {
        all.push_back(stepWindow(rank, first));
      }
    }
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(last(rank));
    }
    return all;
  }
};

}  // namespace straggler
