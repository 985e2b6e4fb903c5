#include "backend/detect/clock_drift.h"

#include <algorithm>

namespace straggler {
namespace {

constexpr auto kLimitPpm = static_cast<double>(ClockOffset::kMaxDriftPpm);

double partsPerMillion(Duration change, Duration span) {
  return 1e6 * static_cast<double>(change.count()) / static_cast<double>(span.count());
}

}  // namespace

void ClockDrift::add(Instant other, const OffsetInterval& offset) {
  if (!moments_.empty() && other <= last_) {
    return;
  }
  last_ = other;
  lastOffset_ = offset;
  if (moments_.empty() || other - moments_.back().begin >= kApart) {
    moments_.push_back({other, other, offset});
  } else if (offset.bound() < moments_.back().offset.bound()) {
    moments_.back() = {moments_.back().begin, other, offset};
  }
  if (moments_.size() > kMoments) {
    moments_.pop_front();
  }
}

std::optional<DriftInterval> ClockDrift::interval() const {
  DriftInterval best{-kLimitPpm, kLimitPpm, {}};
  for (const auto& moment : moments_) {
    const Duration span = last_ - moment.other;
    if (span <= Duration{0}) {
      continue;
    }
    const DriftInterval drift{std::max(-kLimitPpm, partsPerMillion(lastOffset_.lower - moment.offset.upper, span)),
                              std::min(kLimitPpm, partsPerMillion(lastOffset_.upper - moment.offset.lower, span)),
                              span};
    if (drift.boundPpm() < best.boundPpm()) {
      best = drift;
    }
  }
  return best.span > Duration{0} ? std::optional(best) : std::nullopt;
}

}  // namespace straggler
