// LogQueue: lines on their way to a thread that may be slow. Those who speak never wait: a full queue drops the line,
// counts it, and says how many were dropped once there is room again.
//
// Thread safety: push(), waitUntilOut() and stop() from any thread; take() and delivered() by the one thread that carries
// the lines out. Nothing is called under the lock.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "backend/base/clock.h"
#include "backend/base/mutex.h"
#include "backend/report/log.h"

namespace straggler {

class LogQueue {
 public:
  static constexpr std::size_t kMaxLines = 256;

  struct Line {
    Severity severity = Severity::kInfo;
    std::string text;

    bool operator==(const Line&) const = default;
  };

  // False once it was stopped: then the line is the caller's to carry.
  bool push(Line line);

  // Waits for a line; nothing once it was stopped.
  std::optional<Line> take();
  // The line that was taken last is out.
  void delivered();

  // Whether everything is out before `patience` ends. Once it was stopped nothing is waited for.
  bool waitUntilOut(Duration patience);

  // From now on nothing is taken or pushed. Gives what nobody took.
  std::vector<Line> stop();

 private:
  // Queues what there is to say of the dropped ones.
  void sayDropped() REQUIRES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::deque<Line> lines_ GUARDED_BY(mutex_);
  std::uint64_t dropped_ GUARDED_BY(mutex_) = 0;
  bool underway_ GUARDED_BY(mutex_) = false;  // a line was taken and is not out yet
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace straggler
