// DeviceTimer: instants of a device's stream, through torch's generic events, so that one binary serves every kind of
// device and the CPU. The logic is in observe/device_marks.h; here is only what needs torch.
//
// Never synchronises. While the current stream is being captured into a graph nothing is recorded: isCapturing() says so
// to the caller, who counts the operation as captured.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include <c10/core/Device.h>

#include "backend/base/mutex.h"
#include "backend/observe/device_marks.h"

namespace straggler {

class DeviceTimer {
 public:
  // Whether the calling thread's current stream on `device` is being captured. False on the CPU.
  static bool isCapturing(c10::Device device) noexcept;

  // `reached` is called, from poll(), with the instant at which the calling thread's current stream got here.
  void mark(c10::Device device, DeviceMarks::Reached reached) noexcept;

  bool poll(const Clock& clock) noexcept;

 private:
  Mutex mutex_;
  std::map<c10::DeviceType, std::unique_ptr<DeviceMarks>> marks_ GUARDED_BY(mutex_);
};

}  // namespace straggler
