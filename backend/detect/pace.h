// Pace: whether the whole job is slower than it was. Each rank's self time is compared with its own past, the median of its
// last windows; if the ranks' median is above the gate in window after window, and three quarters of the ranks are, every
// rank is slower and nobody is to blame: sequences grew, the machines are throttled, a file system is slow for all.
//
//   gate = max(1 ms, 10 % of the past).   Past 25 ms, now 33 ms on all ranks: job_wide, +8 ms, after 3 windows.
//
// While it lasts, the past is kept as it was; after kSettled windows the new pace is the job's own, and that is said.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/detect/comparison.h"
#include "backend/detect/cusum.h"
#include "backend/detect/suspicion.h"

namespace straggler {

class Pace {
 public:
  static constexpr std::size_t kPast = 50;    // windows
  static constexpr std::size_t kMinPast = 5;  // before anything is said
  static constexpr std::size_t kSettled = 200;

  // Takes a window of which every rank told; says whether `slower()` changed.
  bool add(const WindowComparison& window, double limit);

  bool slower() const { return test_.on; }
  bool settled() const { return settled_; }  // why it is slower no more
  std::int64_t sinceStep() const { return sinceStep_; }
  double excessMs() const { return excess_.median().value_or(0); }
  double pastMs() const { return pastMs_; }
  double confidence() const { return test_.confidence(1); }

 private:
  bool mostAreAbove(const std::vector<double>& excess, double gateMs) const;

  Cusum test_;
  std::vector<Recent> past_;  // self time by rank
  Recent excess_{Suspicion::kRecent};
  double pastMs_ = 0;
  std::int64_t sinceStep_ = 0;
  std::size_t windows_ = 0;  // since it is slower
  bool settled_ = false;
};

}  // namespace straggler
