#include "backend/observe/device_marks.h"

#include <exception>
#include <utility>

namespace straggler {

void DeviceMarks::mark(StreamKey stream, Reached reached) noexcept {
  Mark mark{idleEvent(stream), std::move(reached)};
  if (!mark.event || !keep(stream, mark, record(*mark.event))) {
    mark.reached(Stamp::unknown());
  }
}

bool DeviceMarks::keep(StreamKey stream, Mark& mark, bool open) noexcept {
  const MutexLock lock(mutex_);
  try {
    auto& place = streams_[stream];
    if (open) {
      place.open.push_back(std::move(mark));
    } else {
      place.idle.push_back(std::move(mark.event));
    }
    return open;
  } catch (const std::exception&) {
    --made_;  // no memory: the event goes
    return false;
  }
}

bool DeviceMarks::record(DeviceEvent& event) noexcept {
  try {
    event.record();
    return true;
  } catch (const std::exception&) {
    return false;  // the device refuses: what it would have told is unknown
  }
}

std::unique_ptr<DeviceEvent> DeviceMarks::idleEvent(StreamKey stream) noexcept {
  {
    const MutexLock lock(mutex_);
    const auto place = streams_.find(stream);
    if (place != streams_.end() && !place->second.idle.empty()) {
      auto event = std::move(place->second.idle.back());
      place->second.idle.pop_back();
      return event;
    }
    if (made_ == kMaxOpen) {
      return nullptr;
    }
    ++made_;
  }
  try {
    return makeEvent_();
  } catch (const std::exception&) {
    const MutexLock lock(mutex_);
    --made_;
    return nullptr;
  }
}

DeviceMarks::Mark DeviceMarks::take(StreamKey stream) {
  const MutexLock lock(mutex_);
  auto& marks = streams_[stream].open;
  Mark mark = std::move(marks.front());
  marks.pop_front();
  return mark;
}

bool DeviceMarks::poll(const Clock& clock) noexcept {
  try {
    return pollAll(clock);
  } catch (const std::exception&) {
    return true;  // no memory: later
  }
}

bool DeviceMarks::pollAll(const Clock& clock) {
  // Only this function takes marks out, so the oldest of a stream stays where it is while it is asked.
  std::vector<std::pair<StreamKey, DeviceEvent*>> oldest;
  const auto look = [&] {
    const MutexLock lock(mutex_);
    oldest.clear();
    for (auto& [key, stream] : streams_) {
      if (!stream.open.empty()) {
        oldest.emplace_back(key, stream.open.front().event.get());
      }
    }
  };
  bool progress = true;
  while (progress) {
    progress = false;
    look();
    for (const auto& [stream, event] : oldest) {
      Stamp stamp = Stamp::unknown();
      try {
        if (!event->done()) {
          continue;
        }
        stamp = {clock.now(), StampSource::kDeviceEvent};
      } catch (const std::exception&) {
        // The device is gone: what it would have told is unknown.
      }
      Mark mark = take(stream);
      mark.reached(stamp);
      progress = true;
      keep(stream, mark, false);
    }
  }
  return !oldest.empty();
}

}  // namespace straggler
