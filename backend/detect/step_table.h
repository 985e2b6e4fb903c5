// StepTable: brings the ranks' times of one step together. A step is compared only once every rank has told its own.
//
// Bounded: when too many steps wait for a rank, the oldest is given up and counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "backend/base/clock.h"

namespace straggler {

// One step of all ranks, by position of the rank in the session.
struct StepOfAllRanks {
  std::int64_t step = 0;
  std::vector<double> selfMs;
  std::vector<double> durationMs;
};

class StepTable {
 public:
  explicit StepTable(std::size_t ranks) : ranks_(ranks) {}

  std::optional<StepOfAllRanks> add(std::size_t position, std::int64_t step, double selfMs, double durationMs);

  // Steps that ranks told of and that were never complete.
  std::uint64_t givenUp() const { return givenUp_; }

 private:
  struct Row {
    StepOfAllRanks step;
    std::vector<bool> told;
    std::size_t missing = 0;
  };

  std::size_t ranks_;
  std::map<std::int64_t, Row> waiting_;
  std::uint64_t givenUp_ = 0;
};

}  // namespace straggler
