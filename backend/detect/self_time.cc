#include "backend/detect/self_time.h"

#include <algorithm>

namespace straggler {

void SelfTime::add(const Operation& operation) {
  if (!operation.trainingThread) {
    return;
  }
  if (operation.graphTask != graphTask_) {
    closeBackward();
    graphTask_ = operation.graphTask;
  }
  if (!operation.released.known()) {
    return;
  }
  switch (operation.released.source) {
    case StampSource::kGraphTask:
      backward_ = Interval{operation.arrival.time, operation.released.time};
      break;
    case StampSource::kWait:
      blocked_.push_back(
          {operation.waited.known() ? operation.waited.time : operation.arrival.time, operation.released.time});
      break;
    default:
      blocked_.push_back({operation.arrival.time, operation.released.time});
  }
}

void SelfTime::closeBackward() {
  if (backward_) {
    blocked_.push_back(*backward_);
    backward_.reset();
  }
}

StepTime SelfTime::close(Instant begin, Instant end) {
  closeBackward();
  std::sort(blocked_.begin(), blocked_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  Duration wait{0};
  Instant reached = begin;
  for (const auto& interval : blocked_) {
    const Instant from = std::max(interval.begin, reached);
    const Instant to = std::min(interval.end, end);
    if (to > from) {
      wait += to - from;
      reached = to;
    }
  }
  std::erase_if(blocked_, [end](const auto& interval) { return interval.end <= end; });
  return {(end - begin) - wait, wait};
}

}  // namespace straggler
