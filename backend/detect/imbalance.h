// Imbalance: whether another rank is late each time, so that all wait though none of them is to blame: sequence lengths
// that differ, experts that are drawn unevenly, more threads than processors. What is tested is the largest excess of a
// step, whoever has it, in the median over a window's steps; it is an imbalance if that stays above the gate and no rank
// has it too often.
//
//   gate = max(1 ms, 10 % of the step).   4 ranks, another one 8 ms late each step of 38: +8 ms, each largest in 25 %.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/detect/comparison.h"
#include "backend/detect/cusum.h"
#include "backend/detect/suspicion.h"

namespace straggler {

class Imbalance {
 public:
  // Takes a window; says whether `uneven()` changed. `blamed`: a rank is named, which explains what there is.
  bool add(const WindowComparison& window, bool blamed, double limit);

  bool uneven() const { return test_.on; }
  std::int64_t sinceStep() const { return sinceStep_; }
  double excessMs() const { return excess_.median().value_or(0); }
  double largestShare() const;  // of the steps, of the rank that had the largest self time most often
  double confidence() const { return test_.confidence(1); }

 private:
  bool stop();
  bool oneRankHasIt(std::size_t told) const;

  Cusum test_;
  Recent excess_{Suspicion::kRecent};
  std::int64_t sinceStep_ = 0;
  std::vector<std::uint64_t> timesLargest_;  // by rank, since then
};

}  // namespace straggler
