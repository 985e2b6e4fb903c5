// OsCounters: what the operating system counted for a rank beside its own times: in a window of steps, or in all.
//
// A counter that the kernel does not keep, or that this process may not read, is absent and never zero. Who reads them:
// session/os_account.h, which says where each comes from.
//
//   name                 counts
//   voluntary_switches   the training thread gave its processor up: it slept, or waited for something
//   involuntary_switches its processor was taken from it
//   major_faults         of the training thread: pages that had to be read from a disk
//   block_io             the training thread was blocked until a disk had done what it asked for
//   workers_block_io     the same of its DataLoader's workers, all together
//   read_bytes           came from storage, for the process and its workers; not what was in memory, nor all network file systems
//   read_call_bytes      returned by read() and its like, from wherever, pipes included: what network file systems show in
//   received, sent_bytes through the network interfaces, but for the loopback: of the host, or of the container
//   retransmits          TCP segments that were sent again: the same
//   *_pressure           some task waited for the resource, of the container if it says so, else of the host; *_full: all
//                        tasks that could have run did (PSI)
//   quota_throttles      the process's control group, or one above it, had used its processor quota up: so often, and for
//   quota_throttled      so long, summed over its processors
//   sm_clock_mhz, device_temperature_c        of the NVIDIA device that the process trains on, when it was asked
//   device_slowed_by_heat, device_slowed_by_power    whether it was right then: 0 or 1
//
// The last four are states, no totals.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace straggler {

enum class OsCounter : std::uint8_t {
  kVoluntarySwitches,
  kInvoluntarySwitches,
  kMajorFaults,
  kBlockIo,
  kWorkersBlockIo,
  kReadBytes,
  kReadCallBytes,
  kReceivedBytes,
  kSentBytes,
  kRetransmits,
  kCpuPressure,
  kIoPressure,
  kIoFullPressure,
  kMemoryPressure,
  kMemoryFullPressure,
  kQuotaThrottles,
  kQuotaThrottled,
  kSmClock,
  kDeviceTemperature,
  kDeviceSlowedByHeat,
  kDeviceSlowedByPower,
};
inline constexpr std::size_t kOsCounters = 21;

// Every one of them, in order.
std::array<OsCounter, kOsCounters> allOsCounters();

// A time is counted in microseconds, and shown in milliseconds.
bool isTime(OsCounter counter);

// A state is what it was at the reading; it does not grow with the steps.
bool isState(OsCounter counter);

// The field of a window's record, as "block_io_us", and of a verdict's, a step, as "block_io_ms".
std::string totalField(OsCounter counter);
std::string stepField(OsCounter counter);

class OsCounters {
 public:
  std::optional<std::uint64_t>& operator[](OsCounter counter) { return values_[static_cast<std::size_t>(counter)]; }
  const std::optional<std::uint64_t>& operator[](OsCounter counter) const {
    return values_[static_cast<std::size_t>(counter)];
  }

  // From `before` to these, of what both know. A total that became smaller is not known: it began anew. States are as they
  // are now.
  OsCounters since(const OsCounters& before) const;

  bool operator==(const OsCounters&) const = default;

 private:
  std::array<std::optional<std::uint64_t>, kOsCounters> values_{};
};

}  // namespace straggler
