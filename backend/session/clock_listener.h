// ClockListener: a rank's side of the exchange of stamps over the store; see clock_beat.h.
//
// Once a period it looks whether it is asked. If so, it looks at each turn until the beat changes, and once more for the one
// after that, which says when the one that it saw was there. It gives up after kPatience: the root has stopped.
//
// Thread safety: the monitor's thread alone.
#pragma once

#include <optional>

#include "backend/base/clock.h"
#include "backend/exchange/beat.h"
#include "backend/exchange/exchange.h"
#include "backend/exchange/messages.h"

namespace straggler {

class ClockListener {
 public:
  static constexpr Duration kPatience = std::chrono::milliseconds(300);

  ClockListener(int rank, const Clock& clock, Duration period) : rank_(rank), clock_(clock), period_(period) {}

  // One turn. Returns a reading when there is one.
  std::optional<ClockReading> round(Instant now, Exchange& exchange);

  // Whether the next turn should come soon: how exact the reading is depends on it.
  bool listening() const { return number_ && !seen_; }

 private:
  bool isAsked(const Beat& beat) const;
  void begin(Instant now, const Beat& beat, Instant before);
  std::optional<ClockReading> hear(const Beat& beat, Instant before, Instant after);

  int rank_;
  const Clock& clock_;
  Duration period_;
  std::optional<Instant> nextLook_;
  std::optional<std::uint64_t> number_;  // of the beat seen last; nothing: not asked
  Instant lastUnseen_{};                 // read before the last look that saw that beat
  std::optional<ClockReading> seen_;     // lacks only when the beat was there
  Instant patienceEnds_{};
};

}  // namespace straggler
