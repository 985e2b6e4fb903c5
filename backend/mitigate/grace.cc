#include "backend/mitigate/grace.h"

#include <algorithm>
#include <vector>

namespace straggler {

void Grace::waited(Duration wait) {
  waits_.push_back(wait);
  if (waits_.size() > kKept) {
    waits_.pop_front();
  }
  if (++news_ >= kNews) {
    learn();
  }
}

void Grace::stepTakes(Duration step) {
  const bool first = step_ <= Duration{};
  step_ = step;
  if (first) {
    learn();
  }
}

void Grace::learn() {
  if (waits_.size() < kMinimum || step_ <= Duration{}) {
    return;
  }
  news_ = 0;
  Duration grace = std::max(std::chrono::duration_cast<Duration>(kMargin * cheapest()), kShortest);
  Duration saved{};
  for (const Duration wait : waits_) {
    saved += std::max(wait - grace, Duration{});
  }
  if (static_cast<double>(saved.count()) <
      kWorth * static_cast<double>(step_.count()) * static_cast<double>(waits_.size())) {
    grace = std::max(grace, step_);
  }
  value_ = grace;
}

// The best g is one of the waits, or nothing: between two of them the cost only grows.
Duration Grace::cheapest() const {
  std::vector<Duration> sorted(waits_.begin(), waits_.end());
  std::sort(sorted.begin(), sorted.end());
  const auto staleness = std::chrono::duration_cast<Duration>(kStalenessCost * step_);
  const auto count = static_cast<std::int64_t>(sorted.size());
  Duration best{};
  Duration bestCost = count * staleness;  // everything is filled at once
  Duration below{};
  for (std::int64_t index = 0; index < count; ++index) {
    const Duration wait = sorted[static_cast<std::size_t>(index)];
    below += wait;
    const std::int64_t longer = sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), wait);
    const std::int64_t equal = count - longer - index - 1;
    const Duration cost = below + equal * wait + longer * (wait + staleness);
    if (cost < bestCost) {
      bestCost = cost;
      best = wait;
    }
  }
  return best;
}

}  // namespace straggler
