// LogQueue: lines on their way to a thread that may be slow. Those who speak never wait: a full queue drops the line,
// counts it, and says how many were dropped once there is room again.
//
// Thread safety: push(), retire(), resume() and stop() from any thread; take() and delivered() by the one thread that carries
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

  // Waits for a line; nothing once it was stopped or retired: then the thread has nothing more to do here.
  std::optional<Line> take();
  // The line that was taken last is out.
  void delivered();

  // Waits until everything is out, for at most `patience`. If it is, take() gives nothing until resume(), so the thread that
  // takes, which is underway with no line, comes back at once and can be joined. Once stopped, nothing is waited for.
  bool retire(Duration patience);
  void resume();
  bool isRetired();

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
  bool retired_ GUARDED_BY(mutex_) = false;
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace straggler
