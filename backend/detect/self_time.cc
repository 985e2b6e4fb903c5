#include "backend/detect/self_time.h"

#include <algorithm>

namespace straggler {

void SelfTime::add(const Operation& operation) {
  if (!operation.trainingThread || !operation.released.known()) {
    return;
  }
  const Instant released = operation.released.time;
  switch (operation.released.source) {
    case StampSource::kGraphTask:
      backwards_.insert_or_assign(operation.graphTask, Interval{operation.arrival.time, released});
      break;
    case StampSource::kWait:
      blocked_.push_back({operation.waited.known() ? operation.waited.time : operation.arrival.time, released});
      break;
    default:
      blocked_.push_back({operation.arrival.time, released});
  }
  if (intervals() > kMaxIntervals) {
    pack();
  }
}

StepTime SelfTime::close(Instant begin, Instant end) {
  const Duration wait = blockedWithin(begin, end);
  std::erase_if(blocked_, [end](const auto& interval) { return interval.end <= end; });
  std::erase_if(backwards_, [end](const auto& backward) { return backward.second.end <= end; });
  return {(end - begin) - wait, wait};
}

Duration SelfTime::blockedWithin(Instant begin, Instant end) const {
  std::vector<Interval> all = blocked_;
  for (const auto& [graphTask, interval] : backwards_) {
    all.push_back(interval);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  Duration blocked{0};
  Instant reached = begin;
  for (const auto& interval : all) {
    const Instant from = std::max(interval.begin, reached);
    const Instant to = std::min(interval.end, end);
    if (to > from) {
      blocked += to - from;
      reached = to;
    }
  }
  return blocked;
}

void SelfTime::pack() {
  Instant first = Instant::max();
  for (const auto& interval : blocked_) {
    first = std::min(first, interval.begin);
  }
  for (const auto& [graphTask, interval] : backwards_) {
    first = std::min(first, interval.begin);
  }
  blocked_ = {{first, first + blockedWithin(Instant::min(), Instant::max())}};
  backwards_.clear();
}

}  // namespace straggler
