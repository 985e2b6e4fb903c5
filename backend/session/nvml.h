// Nvml: clock, temperature and throttling of the NVIDIA device that this process trains on, from the driver's own library.
//
// The library is loaded at run time, and only once the process holds a device (/dev/nvidia<n> among its descriptors): nothing
// is linked, and a process without a device loads and asks nothing. Of several devices that it holds (CUDA opens all that it
// may see) it is the one whose list of processes has this one. Where that is none or more than one, as in a container whose
// process ids are not the host's, nothing is known.
//
// Contract: never throws; what the library refuses is absent. Calls may take as long as the driver does. Thread safety: one
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace straggler {

struct DeviceState {
  std::optional<std::uint64_t> smClockMhz;
  std::optional<std::uint64_t> temperatureC;
  std::optional<bool> slowedByHeat;   // right now
  std::optional<bool> slowedByPower;  // the same: at its power cap, or braked

  bool operator==(const DeviceState&) const = default;
};

class Nvml {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";

  // `root` is in front of /proc and /dev (os_account.h).
  explicit Nvml(std::string root = {}, std::string library = kLibrary) noexcept;
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Looks for the device, until it was found: costs a look at the process's descriptors where the host has devices.
  void findDevice() noexcept;

  // Nothing known where no device was found.
  DeviceState state() noexcept;

 private:
  struct Library;
  using Device = void*;  // the library's own

  std::vector<std::uint64_t> heldDevices() const;
  bool load();
  bool runsThisProcess(Device device) const;

  std::string root_;
  std::string name_;
  Library* library_ = nullptr;  // stays loaded: others may use it
  bool refused_ = false;
  Device device_ = nullptr;
};

}  // namespace straggler
