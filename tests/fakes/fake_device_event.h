// FakeDevice: streams whose events a test marks as done, and that can be told to fail.
//
// An event is recorded on the stream that is current (`device.stream`), and done once the test has let that stream run as
// far (`device.run(stream, count)` lets `count` more events of it be reached).
#pragma once

#include <map>
#include <memory>
#include <stdexcept>

#include "backend/observe/device_marks.h"

namespace straggler {

struct FakeDevice {
  DeviceMarks::StreamKey stream = 0;  // the current one
  bool refusesToMake = false;
  bool refusesToRecord = false;
  bool refusesToAnswer = false;
  std::size_t made = 0;
  std::size_t destroyed = 0;

  void run(DeviceMarks::StreamKey key, std::size_t count) { reached_[key] += count; }
  std::unique_ptr<DeviceEvent> makeEvent();

 private:
  friend class FakeDeviceEvent;
  std::map<DeviceMarks::StreamKey, std::size_t> recorded_;  // events put on the stream so far
  std::map<DeviceMarks::StreamKey, std::size_t> reached_;   // of them, those that are done
};

class FakeDeviceEvent final : public DeviceEvent {
 public:
  explicit FakeDeviceEvent(FakeDevice& device) : device_(device) { ++device_.made; }
  ~FakeDeviceEvent() override { ++device_.destroyed; }
  FakeDeviceEvent(const FakeDeviceEvent&) = delete;
  FakeDeviceEvent& operator=(const FakeDeviceEvent&) = delete;

  void record() override {
    if (device_.refusesToRecord) {
      throw std::runtime_error("the device refuses to record");
    }
    stream_ = device_.stream;
    place_ = ++device_.recorded_[stream_];
  }
  bool done() override {
    if (device_.refusesToAnswer) {
      throw std::runtime_error("the device is gone");
    }
    return device_.reached_[stream_] >= place_;
  }

 private:
  FakeDevice& device_;
  DeviceMarks::StreamKey stream_ = 0;
  std::size_t place_ = 0;
};

inline std::unique_ptr<DeviceEvent> FakeDevice::makeEvent() {
  if (refusesToMake) {
    throw std::runtime_error("the device has no events left");
  }
  return std::make_unique<FakeDeviceEvent>(*this);
}

}  // namespace straggler
