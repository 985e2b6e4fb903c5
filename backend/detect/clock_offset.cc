#include "backend/detect/clock_offset.h"

#include <algorithm>

namespace straggler {
namespace {

OffsetInterval intersect(const OffsetInterval& a, const OffsetInterval& b) {
  return {std::max(a.lower, b.lower), std::min(a.upper, b.upper)};
}

}  // namespace

void ClockOffset::observe(Duration lower, Duration upper) {
  if (observed_ == kGeneration) {
    previous_ = current_;
    current_ = {};
    observed_ = 0;
  }
  current_ = intersect(current_, {lower, upper});
  if (current_.lower > current_.upper) {
    current_ = {lower, upper};
    previous_ = {};
  }
  ++observed_;
}

std::optional<OffsetInterval> ClockOffset::interval() const {
  OffsetInterval both = intersect(current_, previous_);
  if (both.lower > both.upper) {
    both = current_;
  }
  return both.bounded() && both.lower <= both.upper ? std::optional(both) : std::nullopt;
}

}  // namespace straggler
