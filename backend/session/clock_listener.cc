#include "backend/session/clock_listener.h"

#include <algorithm>
#include <utility>

namespace straggler {

bool ClockListener::isAsked(const Beat& beat) const {
  return std::find(beat.asked.begin(), beat.asked.end(), rank_) != beat.asked.end();
}

std::optional<ClockReading> ClockListener::round(Instant now, Exchange& exchange) {
  if (number_ && now >= patienceEnds_) {
    number_.reset();
    seen_.reset();
  }
  if (!number_ && nextLook_ && now < *nextLook_) {
    return std::nullopt;
  }
  const Instant before = clock_.now();
  const auto bytes = exchange.lookAtBeat();
  const Instant after = clock_.now();
  const auto beat = bytes ? decodeBeat(*bytes) : std::nullopt;
  if (number_) {
    return beat ? hear(*beat, before, after) : std::nullopt;
  }
  nextLook_ = now + period_;
  if (beat && isAsked(*beat)) {
    begin(now, *beat, before);
  }
  return std::nullopt;
}

void ClockListener::begin(Instant now, const Beat& beat, Instant before) {
  number_ = beat.number;
  lastUnseen_ = before;
  patienceEnds_ = now + kPatience;
}

std::optional<ClockReading> ClockListener::hear(const Beat& beat, Instant before, Instant after) {
  if (beat.number <= *number_) {
    lastUnseen_ = seen_ ? lastUnseen_ : before;
    return std::nullopt;
  }
  number_ = beat.number;
  if (!seen_) {
    seen_ = ClockReading{beat.before, {}, lastUnseen_, after};
    return std::nullopt;
  }
  ClockReading reading = *std::exchange(seen_, std::nullopt);
  reading.rootAfter = beat.lastShown;
  number_.reset();
  return reading;
}

}  // namespace straggler
