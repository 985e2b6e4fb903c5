// ClockDrift: a certified interval for the drift between two clocks, in parts per million: by how much their offset has
// changed, of the time that has passed on the other clock.
//
// It is the mean over a span, since the rate of a clock changes; nothing is assumed of it but the limit of ClockOffset. With
// the offset in [L1, U1] at the beginning of the span and in [L2, U2] at its end, d later:
//
//   (L2 - U1) / d  <=  drift  <=  (U2 - L1) / d
//
//   [71, 73] ms, and 50 s later [75, 77] ms  ->  40 to 120 ppm
//
// A span ends with what is known last. It may begin at any of the moments that are remembered, kApart or more from each
// other and at most kMoments of them; told is the one with the narrowest interval.
#pragma once

#include <deque>
#include <optional>

#include "backend/detect/clock_offset.h"

namespace straggler {

struct DriftInterval {
  double lowerPpm = 0;
  double upperPpm = 0;
  Duration span{};

  double middlePpm() const { return (lowerPpm + upperPpm) / 2; }
  double boundPpm() const { return (upperPpm - lowerPpm) / 2; }
};

class ClockDrift {
 public:
  static constexpr Duration kApart = std::chrono::seconds(2);
  static constexpr std::size_t kMoments = 60;

  // What is known of the offset when the other clock reads `other`. One that is not later than the last is passed over.
  void add(Instant other, const OffsetInterval& offset);
  // A clock has leapt.
  void forget() { moments_.clear(); }

  // Nothing until it says more than the limit of ClockOffset does.
  std::optional<DriftInterval> interval() const;

 private:
  struct Moment {
    Instant begin;  // what is known of kApart from here on may take its place, if it is narrower
    Instant other;
    OffsetInterval offset;
  };

  std::deque<Moment> moments_;
  Instant last_{};
  OffsetInterval lastOffset_;
};

}  // namespace straggler
