// ClockOffset: a certified interval for the offset between two clocks at any moment, from the traffic itself.
//
// offset = reference - other, both read at the same moment; it is kept as a function of what the other clock reads then.
// Nobody completes an N-by-N operation before its last rank has arrived. So for rank q on the reference clock and rank r
// on the other, with arrivals a and completions c each on its own clock:
//
//   when r's clock reads c_r, the reference reads at least a_q   ->   offset(c_r) >= a_q - c_r
//   when r's clock reads a_r, the reference reads at most c_q    ->   offset(a_r) <= c_q - a_r
//
// The rate of neither clock is taken as constant: temperature and NTP change it. All that is assumed is that the offset
// changes by at most kMaxDrift of the time that passes. So a bound that holds at one moment holds at another, widened by
// kMaxDrift times what lies between; of all of them the tightest counts:
//
//   lower(x) = max of L_i - kMaxDrift |x - x_i|       upper(x) = min of U_j + kMaxDrift |x - x_j|
//
// Sound: each term is a bound of offset(x), since |offset(x) - offset(x_i)| <= kMaxDrift |x - x_i|, whatever the drift did
// in between. As tight as can be: both lower() and upper() are themselves offsets that no observation contradicts. One
// number a side is enough for all x from the latest observation on, since from there all terms widen alike.
//
//   1 µs a ms. a_q = 100, c_q = 130; a_r = 5, c_r = 29           ->  71 at 29, 125 at 5: at 29 it is in [71, 125.024]
//   a second later, a_q = 1099, c_q = 1103; a_r = 1004, c_r = 1030  ->  69 at 1030, 99 at 1004: at 1030 in [69.999, 99.026],
//   the lower one being 71 less 1.001, still more than the new one says
//
// A clock that leaps (a suspended machine, a migrated one) makes a lower bound exceed an upper one. Then all that was known
// is forgotten, and counted, and what is still told of the time before is passed over: nothing is known until both sides are
// anew. A leap that contradicts nothing at once leaves the truth outside of the interval by at most g, the least time that
// passed between the two events of a bound observed since (by more, that bound would contradict), and from then on
// for at most g / kMaxDrift, since the old side widens that fast: 0.2 s once an operation ended 0.2 ms after its last arrival.
// Clocks that drift by more than kMaxDrift are found out as those that leap are, again and again.
//
// Intervals that are intersected, and widened by a bound of the drift: Marzullo and Owicki, Maintaining the time in a
// distributed system (1985). The lines through the hull of all bounds, of Duda et al., Estimating global time in
// distributed systems (1987), and the linear program of Moon, Skelly and Towsley, Estimation and removal of clock skew from
// network delay measurements (1999), are tighter while the drift is constant, and wrong once it changes.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/base/clock.h"

namespace straggler {

struct OffsetInterval {
  Duration lower = Duration::min();
  Duration upper = Duration::max();

  // The best single value and how far off it can be.
  Duration middle() const { return lower + (upper - lower) / 2; }
  Duration bound() const { return (upper - lower + Duration(1)) / 2; }
};

// Two pairs of events on two clocks; in each, the first came no later than the second.
struct Crossing {
  Instant referenceBefore{};
  Instant otherAfter{};
  Instant otherBefore{};
  Instant referenceAfter{};
};

class ClockOffset {
 public:
  // Linux corrects a clock's rate by at most 500 ppm (MAXFREQ in its linux/timex.h), far more than a crystal is off by. Two
  // clocks that are both corrected so, one up and one down, drift by twice that.
  static constexpr std::int64_t kMaxDriftPpm = 1000;
  // By how much the offset may change while so much time passes.
  static Duration drifted(Duration passed);

  void observe(const Crossing& crossing);

  // When the other clock reads `other`. Nothing until both sides are known, nor before the last leap was noticed.
  std::optional<OffsetInterval> interval(Instant other) const;

  // The latest reading of the other clock at which a bound was observed.
  std::optional<Instant> newest() const;
  // How often a clock has leapt.
  std::uint64_t leaps() const { return leaps_; }

 private:
  // A lower bound of a value at one moment, and by the limit of drift at all others.
  struct Bound {
    Instant when;
    Duration value;
    Duration at(Instant other) const { return value - drifted(std::chrono::abs(other - when)); }
  };
  static void tighten(std::optional<Bound>& bound, const Bound& seen);
  bool contradictory() const;

  std::optional<Bound> lower_;    // of the offset
  std::optional<Bound> negated_;  // of the offset times -1: the upper one
  Instant since_ = Instant::min();
  std::uint64_t leaps_ = 0;
};

}  // namespace straggler
