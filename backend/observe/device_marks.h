// DeviceMarks: turns "the stream has got here" into an instant, by polling events in the order of their recording.
//
// An event is an untimed one of the device, recorded on the caller's own stream; the instant at which polling first finds
// it done is late by up to the poll's period, never early. Events of one stream are done in order, so only the oldest
// open one of each stream is asked. Events are used again: their number stays bounded, and none is destroyed while
// polling.
//
// Thread safety: mark() may be called from any thread; poll() by one thread. Lock order: mutex_ is a leaf; callbacks and
// queries are made without it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backend/base/clock.h"
#include "backend/base/mutex.h"
#include "backend/observe/operation.h"

namespace straggler {

// One event of a device. Its functions may throw what the device's library throws.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Records itself on the calling thread's current stream.
  virtual void record() = 0;
  virtual bool done() = 0;
};

class DeviceMarks {
 public:
  using StreamKey = std::uint64_t;
  using Reached = std::function<void(Stamp)>;
  static constexpr std::size_t kMaxOpen = 4096;

  explicit DeviceMarks(std::function<std::unique_ptr<DeviceEvent>()> makeEvent) : makeEvent_(std::move(makeEvent)) {}

  // `reached` is called once: by poll(), with the instant, or with an unknown stamp if the device fails; at once, with an
  // unknown stamp, if too many marks are open, there is no memory, or the device refuses.
  void mark(StreamKey stream, Reached reached) noexcept;

  // Returns whether marks are still open.
  bool poll(const Clock& clock) noexcept;

 private:
  struct Mark {
    std::unique_ptr<DeviceEvent> event;
    Reached reached;
  };
  struct Stream {
    std::deque<Mark> open;
    std::vector<std::unique_ptr<DeviceEvent>> idle;
  };
  // One that can be recorded on the stream; null when as many as allowed are in use, or the device makes none.
  std::unique_ptr<DeviceEvent> idleEvent(StreamKey stream) noexcept;
  static bool record(DeviceEvent& event) noexcept;
  // Keeps a mark that is open, or else its event for another time. Says whether the mark is kept.
  bool keep(StreamKey stream, Mark& mark, bool open) noexcept;
  // Takes the oldest mark of a stream out.
  Mark take(StreamKey stream);
  bool pollAll(const Clock& clock);

  std::function<std::unique_ptr<DeviceEvent>()> makeEvent_;
  Mutex mutex_;
  std::map<StreamKey, Stream> streams_ GUARDED_BY(mutex_);
  std::size_t made_ GUARDED_BY(mutex_) = 0;
};

}  // namespace straggler
