#include "backend/session/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "backend/session/proc_text.h"

namespace straggler {
namespace {

constexpr std::size_t kMaxDescriptors = 4096;
constexpr unsigned kMaxProcesses = 256;  // on one device

// As in nvml.h of the driver, whose library keeps them.
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;
constexpr int kTemperatureGpu = 0;
constexpr unsigned long long kPowerReasons = 0x4 | 0x80;  // software power cap, hardware power brake
constexpr unsigned long long kHeatReasons = 0x20 | 0x40;  // software and hardware thermal slowdown
struct ProcessInfo {
  unsigned processId;
  unsigned long long usedMemory;
  unsigned gpuInstance;
  unsigned computeInstance;
};

}  // namespace

struct Nvml::Library {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*minorNumber)(Device, unsigned*) = nullptr;
  int (*processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*reasons)(Device, unsigned long long*) = nullptr;  // null: of neither name

  // Whether everything that finding a device needs is there.
  bool open(const char* name) {
    void* opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      return false;
    }
    find(opened, "nvmlDeviceGetCurrentClocksEventReasons", reasons);
    if (reasons == nullptr) {
      find(opened, "nvmlDeviceGetCurrentClocksThrottleReasons", reasons);
    }
    find(opened, "nvmlDeviceGetClockInfo", clock);
    find(opened, "nvmlDeviceGetTemperature", temperature);
    find(opened, "nvmlDeviceGetComputeRunningProcesses_v3", processes);
    return find(opened, "nvmlInit_v2", init) && find(opened, "nvmlShutdown", shutdown) &&
           find(opened, "nvmlDeviceGetCount_v2", count) && find(opened, "nvmlDeviceGetHandleByIndex_v2", handle) &&
           find(opened, "nvmlDeviceGetMinorNumber", minorNumber);
  }
  template <class Function>
  static bool find(void* opened, const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(dlsym(opened, symbol));
    return function != nullptr;
  }
};

Nvml::Nvml(std::string root, std::string library) noexcept : root_(std::move(root)), name_(std::move(library)) {}

Nvml::~Nvml() {
  if (library_ != nullptr) {
    library_->shutdown();
  }
  delete library_;
}

bool Nvml::load() {
  if (library_ != nullptr || refused_) {
    return library_ != nullptr;
  }
  auto library = std::make_unique<Library>();
  refused_ = !library->open(name_.c_str()) || library->init() != kSuccess;
  library_ = refused_ ? nullptr : library.release();
  return library_ != nullptr;
}

// By the minor number of their nodes.
std::vector<std::uint64_t> Nvml::heldDevices() const {
  constexpr std::string_view kNode = "/dev/nvidia";
  std::vector<std::uint64_t> held;
  std::error_code error;
  if (!std::filesystem::exists(root_ + "/dev/nvidiactl", error)) {
    return held;
  }
  std::filesystem::directory_iterator entry(root_ + "/proc/self/fd", error);
  for (std::size_t seen = 0; !error && entry != std::filesystem::directory_iterator() && seen < kMaxDescriptors;
       ++seen) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry->path(), gone).string();
    if (target.starts_with(kNode)) {
      if (const auto minor = proc::number(std::string_view(target).substr(kNode.size()))) {
        held.push_back(*minor);
      }
    }
    entry.increment(error);
  }
  return held;
}

bool Nvml::runsThisProcess(Device device) const {
  std::array<ProcessInfo, kMaxProcesses> infos{};
  unsigned count = kMaxProcesses;
  if (library_->processes == nullptr || library_->processes(device, &count, infos.data()) != kSuccess) {
    return false;
  }
  const auto end = infos.begin() + std::min(count, kMaxProcesses);
  return std::any_of(infos.begin(), end, [self = static_cast<unsigned>(getpid())](const ProcessInfo& info) {
    return info.processId == self;
  });
}

void Nvml::findDevice() noexcept {
  try {
    if (device_ != nullptr || refused_) {
      return;
    }
    const auto held = heldDevices();
    if (held.empty() || !load()) {
      return;
    }
    std::vector<Device> devices;
    unsigned count = 0;
    library_->count(&count);
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      unsigned minor = 0;
      if (library_->handle(i, &device) == kSuccess && library_->minorNumber(device, &minor) == kSuccess &&
          std::find(held.begin(), held.end(), minor) != held.end()) {
        devices.push_back(device);
      }
    }
    if (devices.size() > 1) {
      std::erase_if(devices, [this](Device device) { return !runsThisProcess(device); });
    }
    device_ = devices.size() == 1 ? devices.front() : nullptr;
  } catch (const std::exception&) {  // no memory: it is looked for again
  }
}

DeviceState Nvml::state() noexcept {
  DeviceState state;
  if (device_ == nullptr) {
    return state;
  }
  unsigned value = 0;
  if (library_->clock != nullptr && library_->clock(device_, kClockSm, &value) == kSuccess) {
    state.smClockMhz = value;
  }
  if (library_->temperature != nullptr && library_->temperature(device_, kTemperatureGpu, &value) == kSuccess) {
    state.temperatureC = value;
  }
  unsigned long long reasons = 0;
  if (library_->reasons != nullptr && library_->reasons(device_, &reasons) == kSuccess) {
    state.slowedByHeat = (reasons & kHeatReasons) != 0;
    state.slowedByPower = (reasons & kPowerReasons) != 0;
  }
  return state;
}

}  // namespace straggler
