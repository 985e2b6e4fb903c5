#include "backend/detect/self_time.h"

#include <algorithm>
#include <utility>

namespace straggler {
namespace {

// The length of the union of the intervals, within [begin, end].
template <class Interval>
Duration unionWithin(std::vector<Interval> intervals, Instant begin, Instant end) {
  std::sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  Duration length{0};
  Instant reached = begin;
  for (const auto& interval : intervals) {
    const Instant from = std::max(interval.begin, reached);
    const Instant to = std::min(interval.end, end);
    if (to > from) {
      length += to - from;
      reached = to;
    }
  }
  return length;
}

}  // namespace

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
  packIfMany();
}

void SelfTime::addFetch(Fetch fetch) {
  sawFetch_ = true;
  fetches_.push_back({fetch.begin, fetch.end});
  packIfMany();
}

StepTime SelfTime::close(Instant begin, Instant end) {
  StepTime time = within(begin, end);
  const auto isOver = [end](const Interval& interval) { return interval.end <= end; };
  std::erase_if(blocked_, isOver);
  std::erase_if(fetches_, isOver);
  std::erase_if(backwards_, [&isOver](const auto& backward) { return isOver(backward.second); });
  time.self = (end - begin) - time.wait;
  return time;
}

std::vector<SelfTime::Interval> SelfTime::blocked() const {
  std::vector<Interval> all = blocked_;
  for (const auto& [graphTask, interval] : backwards_) {
    all.push_back(interval);
  }
  return all;
}

StepTime SelfTime::within(Instant begin, Instant end) const {
  std::vector<Interval> all = blocked();
  StepTime time;
  time.wait = unionWithin(all, begin, end);
  if (!fetches_.empty()) {
    all.insert(all.end(), fetches_.begin(), fetches_.end());
    time.input = unionWithin(std::move(all), begin, end) - time.wait;
  }
  return time;
}

void SelfTime::packIfMany() {
  if (intervals() <= kMaxIntervals) {
    return;
  }
  std::vector<Interval> all = blocked();
  all.insert(all.end(), fetches_.begin(), fetches_.end());
  const auto byBegin = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
  const Instant first = std::min_element(all.begin(), all.end(), byBegin)->begin;
  const StepTime time = within(Instant::min(), Instant::max());
  blocked_ = {{first, first + time.wait}};
  backwards_.clear();
  fetches_ = {{first + time.wait, first + time.wait + time.input}};
}

}  // namespace straggler
