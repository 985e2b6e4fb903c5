#include "backend/c10d/device_timer.h"

#include <exception>
#include <utility>
#include <vector>

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace straggler {
namespace {

c10::Stream currentStream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

class TorchEvent final : public DeviceEvent {
 public:
  explicit TorchEvent(c10::DeviceType type) : event_(type), type_(type) {}

  void record() override {
    const c10::impl::VirtualGuardImpl guard(type_);
    event_.record(guard.getStream(guard.getDevice()));
  }
  bool done() override { return event_.query(); }

 private:
  c10::Event event_;
  c10::DeviceType type_;
};

}  // namespace

bool DeviceTimer::isCapturing(c10::Device device) noexcept {
  if (device.is_cpu()) {
    return false;
  }
  try {
    return currentStream(device).is_capturing();
  } catch (const std::exception&) {
    return false;  // this kind of device has no graphs
  }
}

void DeviceTimer::mark(c10::Device device, DeviceMarks::Reached reached) noexcept {
  DeviceMarks* marks = nullptr;
  DeviceMarks::StreamKey key = 0;
  try {
    key = currentStream(device).hash();
    const MutexLock lock(mutex_);
    auto& place = marks_[device.type()];
    if (!place) {
      place = std::make_unique<DeviceMarks>([type = device.type()] { return std::make_unique<TorchEvent>(type); });
    }
    marks = place.get();
  } catch (const std::exception&) {
    reached(Stamp::unknown());
    return;
  }
  marks->mark(key, std::move(reached));
}

bool DeviceTimer::poll(const Clock& clock) noexcept {
  std::vector<DeviceMarks*> all;
  try {
    const MutexLock lock(mutex_);
    for (const auto& [type, marks] : marks_) {
      all.push_back(marks.get());
    }
  } catch (const std::exception&) {
    return true;  // no memory: later
  }
  bool open = false;
  for (DeviceMarks* marks : all) {
    open = marks->poll(clock) || open;
  }
  return open;
}

}  // namespace straggler
