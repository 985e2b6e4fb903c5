// Own past: what a rank without peers is compared with. Its excess is what its self time is above the median of its last
// windows, less what the rest of the job is slower by: where all are slower, none of them is to blame.
//
//   a stage of 30 ms now takes 39; the other stages take what they took: excess 9 ms
//   the others take 20 % more too (or 6 ms):                              excess 39 - 30 - 6 = 3 ms
//
// Of what the others are slower by, in milliseconds or in parts of their past, the larger counts: stages differ in length,
// and what slows all of them adds the same to each or stretches each alike. The past stands still while the rank is suspected.
#pragma once

#include <optional>
#include <vector>

#include "backend/detect/comparison.h"
#include "backend/detect/suspicion.h"
#include "backend/detect/window_table.h"

namespace straggler {

// How long a class of ranks takes now, and took.
struct Level {
  double nowMs = 0;
  double pastMs = 0;
};

// What a rank of this past is slower by for the reason that the others are; never negative. `others`: of the other classes.
double commonMs(double pastMs, const std::vector<Level>& others);

class OwnPast {
 public:
  static constexpr std::size_t kPast = 50;    // windows
  static constexpr std::size_t kMinPast = 5;  // before anything is said

  void add(double selfMs) { past_.add(selfMs); }
  std::size_t size() const { return past_.size(); }
  std::optional<double> medianMs() const { return past_.median(kMinPast); }

 private:
  Recent past_{kPast};
};

// A window of one rank that told, beside its past.
WindowComparison compareWithPast(const WindowRow& row, double pastMs, double commonMs);

}  // namespace straggler
