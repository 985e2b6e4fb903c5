#include "backend/session/clock_beat.h"

#include <utility>

namespace straggler {

void ClockBeat::ask(std::vector<int> ranks, Instant now) {
  askedAt_ = now;
  beat_.asked = std::move(ranks);
}

void ClockBeat::round() {
  if (beat_.asked.empty() && !shown_) {
    return;
  }
  shown_ = !beat_.asked.empty();
  ++beat_.number;
  beat_.before = clock_.now();
  const auto bytes = encodeBeat(beat_);
  for (const auto& exchange : exchanges_) {
    exchange->showBeat(bytes);
  }
  beat_.lastShown = clock_.now();
}

}  // namespace straggler
