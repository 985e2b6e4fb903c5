// FakeNvml: what the library of tests/fakes/fake_nvml.cc says, which stands for the driver's; a test sets it through
// dlsym("fakeNvml").
#pragma once

#include <array>

namespace straggler {

struct FakeNvml {
  struct Device {
    unsigned minorNumber = 0;
    unsigned processId = 0;  // 0: none runs on it
    unsigned smClockMhz = 0;
    unsigned temperatureC = 0;
    unsigned long long reasons = 0;
  };
  unsigned devices = 0;
  std::array<Device, 4> device{};
  int error = 0;      // of every question about a device's state
  int initError = 0;  // of the beginning
  int begun = 0;      // less how often it was ended
};

}  // namespace straggler
