#include "backend/detect/clock_offset.h"

#include <algorithm>

namespace straggler {

Duration ClockOffset::drifted(Duration passed) {
  constexpr std::int64_t kPerDrift = 1'000'000 / kMaxDriftPpm;
  return (passed + Duration(kPerDrift - 1)) / kPerDrift;  // never less than the truth
}

void ClockOffset::tighten(std::optional<Bound>& bound, const Bound& seen) {
  if (!bound) {
    bound = seen;
    return;
  }
  const Instant latest = std::max(bound->when, seen.when);
  bound = Bound{latest, std::max(bound->at(latest), seen.at(latest))};
}

bool ClockOffset::contradictory() const {
  return lower_ && negated_ &&
         lower_->value + negated_->value > drifted(std::chrono::abs(lower_->when - negated_->when));
}

void ClockOffset::observe(const Crossing& crossing) {
  const auto& [referenceBefore, otherAfter, otherBefore, referenceAfter] = crossing;
  if (std::min(otherBefore, otherAfter) < since_) {
    return;
  }
  tighten(lower_, {otherAfter, referenceBefore - otherAfter});
  tighten(negated_, {otherBefore, otherBefore - referenceAfter});
  if (contradictory()) {
    // The leap may have been between these events themselves: nothing of them is kept.
    lower_ = negated_ = std::nullopt;
    since_ = std::max(otherBefore, otherAfter);
    ++leaps_;
  }
}

std::optional<OffsetInterval> ClockOffset::interval(Instant other) const {
  if (!lower_ || !negated_ || other < since_) {
    return std::nullopt;
  }
  return OffsetInterval{lower_->at(other), -negated_->at(other)};
}

std::optional<Instant> ClockOffset::newest() const {
  return lower_ && negated_ ? std::optional(std::max(lower_->when, negated_->when)) : std::nullopt;
}

}  // namespace straggler
