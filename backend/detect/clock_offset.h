// ClockOffset: a certified interval for the offset between two clocks, from the traffic itself.
//
// Nobody completes an N-by-N operation before its last rank has arrived. So for rank q on the reference clock and rank r
// on the other, with arrivals a and completions c each on its own clock, and offset = reference - other:
//
//   c_r + offset >= a_q   ->   offset >= a_q - c_r
//   c_q >= a_r + offset   ->   offset <= c_q - a_r
//
// Every such operation narrows the interval; the truth lies in it as long as the clocks do not drift. Intervals older
// than two generations are forgotten, which bounds the drift that can gather.
//
//   a_q = 100, c_q = 130; a_r = 5, c_r = 29  ->  71 <= offset <= 125
#pragma once

#include <cstddef>
#include <optional>

#include "backend/base/clock.h"

namespace straggler {

struct OffsetInterval {
  Duration lower = Duration::min();
  Duration upper = Duration::max();

  bool bounded() const { return lower != Duration::min() && upper != Duration::max(); }
  // The best single value and how far off it can be.
  Duration middle() const { return lower + (upper - lower) / 2; }
  Duration bound() const { return (upper - lower + Duration(1)) / 2; }
};

class ClockOffset {
 public:
  static constexpr std::size_t kGeneration = 256;  // observations

  void observe(Duration lower, Duration upper);

  // Nothing until both sides are known. An empty intersection means that a clock has moved: then what was known is
  // forgotten and the interval of the newest generation counts.
  std::optional<OffsetInterval> interval() const;

 private:
  OffsetInterval current_;
  OffsetInterval previous_;
  std::size_t observed_ = 0;
};

}  // namespace straggler
