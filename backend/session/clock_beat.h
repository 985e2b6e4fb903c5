// ClockBeat: the root's side of the exchange of stamps over the store, for clocks that the traffic leaves loose.
//
// While there are such, the root shows a beat at each of its turns: a number, its clock, and who is asked. A rank that is
// asked looks every millisecond until the number changes (clock_listener.h), and tells what its clock read when it last saw
// the old one, and when it first saw the new one. Whichever way the store is slow, nobody sees a beat before it is shown,
// nor misses one that was there before the look began:
//
//   the root's clock  100.0: shows beat 7      100.1: it is there (the store answered)
//   the rank's clock   99.0: looks, sees beat 6      100.4: has looked, sees beat 7
//   so 100.0 came no later than the rank's 100.4, and its 99.0 no later than 100.1: its clock is behind by -0.4 to 1.1
//
// Cristian, Probabilistic clock synchronization (1989), bounds a clock by the time of a round trip; here the time between two
// looks takes its place, and neither side waits for the other.
//
// Cost: two calls on the store a turn, and some 30 of each rank that is asked a second, kMaxAsked at most. Nothing where all
// clocks are the root's or known well, and nothing over a store that keeps what was ever set.
//
// Thread safety: the collector's thread alone.
#pragma once

#include <memory>
#include <vector>

#include "backend/base/clock.h"
#include "backend/exchange/beat.h"
#include "backend/exchange/exchange.h"

namespace straggler {

class ClockBeat {
 public:
  // Who is asked changes no faster than this.
  static constexpr Duration kPeriod = std::chrono::seconds(1);

  ClockBeat(std::vector<std::shared_ptr<Exchange>> exchanges, const Clock& clock)
      : exchanges_(std::move(exchanges)), clock_(clock) {}

  // Whether ask() is due.
  bool due(Instant now) const { return !askedAt_ || now - *askedAt_ >= kPeriod; }
  void ask(std::vector<int> ranks, Instant now);

  // One turn. When nobody is asked any more that is shown once, and then nothing.
  void round();

 private:
  std::vector<std::shared_ptr<Exchange>> exchanges_;
  const Clock& clock_;
  Beat beat_;
  bool shown_ = false;  // that somebody is asked
  std::optional<Instant> askedAt_;
};

}  // namespace straggler
