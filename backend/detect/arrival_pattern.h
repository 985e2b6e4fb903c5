// ArrivalPattern: all ranks' arrivals at one operation, on one clock, with how far off each may be.
#pragma once

#include <cstddef>
#include <vector>

#include "backend/base/clock.h"
#include "backend/observe/operation.h"

namespace straggler {

struct RankArrival {
  int rank = 0;  // global
  Instant time{};
  Duration bound{};       // the true arrival is within this of `time`
  std::size_t clock = 0;  // that it was read from: arrivals from one clock are off by the same
};

struct RankLateness {
  int rank = 0;
  Duration lateness{};
};

struct ArrivalPattern {
  OpKey key;
  Duration skew{};   // largest minus smallest arrival
  Duration bound{};  // of the skew: the true one is within this of it, whichever ranks were really first and last
  int lastArriver = 0;
  bool lastIsCertain = true;           // false: by the bounds of the arrivals, another rank may have been the last
  std::vector<RankLateness> lateness;  // arrival minus the smallest arrival, by rank
};

// What a stamp itself may be off by: a clock is read a little before or after what it stamps.
inline constexpr Duration kStampResolution = std::chrono::microseconds(1);

// `arrivals` holds at least one rank.
ArrivalPattern arrivalPattern(const OpKey& key, const std::vector<RankArrival>& arrivals);

}  // namespace straggler
