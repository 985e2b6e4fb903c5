#include "backend/report/log_queue.h"

#include <iterator>
#include <utility>

namespace straggler {
namespace {

constexpr Duration kLong = std::chrono::hours(1);

}  // namespace

bool LogQueue::push(Line line) {
  const MutexLock lock(mutex_);
  if (stopped_) {
    return false;
  }
  if (lines_.size() >= kMaxLines) {
    ++dropped_;
    return true;
  }
  sayDropped();
  lines_.push_back(std::move(line));
  changed_.notifyAll();
  return true;
}

void LogQueue::sayDropped() {
  if (dropped_ > 0) {
    lines_.push_back({Severity::kWarning, "straggler: " + std::to_string(dropped_) +
                                              " lines were dropped: they were not taken as fast as they came"});
    dropped_ = 0;
  }
}

std::optional<LogQueue::Line> LogQueue::take() {
  const MutexLock lock(mutex_);
  // NOLINTNEXTLINE(bugprone-infinite-loop): another thread changes what it waits for
  while (!changed_.waitFor(mutex_, kLong,
                           [this]() NO_THREAD_SAFETY_ANALYSIS { return stopped_ || retired_ || !lines_.empty(); })) {
  }
  if (stopped_ || retired_) {
    return std::nullopt;
  }
  underway_ = true;
  Line line = std::move(lines_.front());
  lines_.pop_front();
  if (lines_.empty()) {
    sayDropped();
  }
  return line;
}

void LogQueue::delivered() {
  const MutexLock lock(mutex_);
  underway_ = false;
  changed_.notifyAll();
}

bool LogQueue::retire(Duration patience) {
  const MutexLock lock(mutex_);
  const bool out = changed_.waitFor(
      mutex_, patience, [this]() NO_THREAD_SAFETY_ANALYSIS { return lines_.empty() && (!underway_ || stopped_); });
  retired_ = retired_ || out;
  changed_.notifyAll();
  return out && !underway_;
}

bool LogQueue::isRetired() {
  const MutexLock lock(mutex_);
  return retired_;
}

void LogQueue::resume() {
  const MutexLock lock(mutex_);
  retired_ = false;
}

std::vector<LogQueue::Line> LogQueue::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  changed_.notifyAll();
  std::vector<Line> left(std::make_move_iterator(lines_.begin()), std::make_move_iterator(lines_.end()));
  lines_.clear();
  return left;
}

}  // namespace straggler
