// Grace: how long a rank waits in a slot before it says so. From what was measured, no constant that a user must find.
//
// To have a slot filled for a late rank costs staleness; to wait costs time. Staleness is taken to cost a quarter of a step, a
// step being what the rank does itself, without its waits. The grace is the g with the least cost over the waits of the
// recent slots, as they would have been without any filling:
//
//   cost(g) = sum over waits w of  min(w, g) + (w > g ? a quarter of a step : 0)
//
// So what is waited for often and shortly is waited for, and what is rare and long is not. Example, steps of 30 ms: waits of
// 1 ms, one in a hundred of 600 ms: g = 1 ms, since to wait for the others costs more than 1 + 7.5 ms each.
//
// Where it would save less than 3 % of the time, which is how a healthy job looks on a busy machine, whatever is not longer
// than a whole step is waited for: waits of 1 ms, one in a hundred of 9 ms: g = 30 ms.
//
// The rule is that of the ski rental problem with known odds (Karlin et al., Competitive Randomized Algorithms for Nonuniform
// Problems, 1994: the best fixed threshold for a known distribution).
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "backend/base/clock.h"

namespace straggler {

class Grace {
 public:
  static constexpr std::size_t kKept = 512;    // waits
  static constexpr std::size_t kMinimum = 16;  // below this many nothing is known
  static constexpr std::size_t kNews = 4;      // it is worked out anew with each so many
  static constexpr double kMargin = 1.5;  // on the longest wait that is waited for: the next may be a little longer
  static constexpr double kStalenessCost = 0.25;  // of a step
  static constexpr double kWorth = 0.03;          // of a step, that have to be saved in each
  static constexpr Duration kShortest = std::chrono::milliseconds(2);

  // The wait of a slot that nobody was asked to fill, or, where it was filled, the wait that this saved as told later.
  void waited(Duration wait);
  // How long this rank's step takes now, without its waits; zero: unknown.
  void stepTakes(Duration step);

  // Nothing as long as too little is known: then nobody reports.
  std::optional<Duration> value() const { return value_; }

 private:
  void learn();
  Duration cheapest() const;

  std::deque<Duration> waits_;
  Duration step_{};
  std::optional<Duration> value_;
  std::size_t news_ = 0;  // waits since it was last worked out
};

}  // namespace straggler
