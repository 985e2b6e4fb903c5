// Clock: where the core reads the time. Injected, so that tests advance it by hand and never sleep.
//
// An Instant is on one host's monotonic clock (CLOCK_MONOTONIC, what std::chrono::steady_clock reads on Linux): two of
// them may only be compared if both come from the same clock. clockDomain() names that clock; ranks whose domains are
// equal share it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace straggler {

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const noexcept = 0;
};

class SteadyClock final : public Clock {
 public:
  Instant now() const noexcept override { return std::chrono::steady_clock::now(); }
};

inline std::int64_t toNanoseconds(Instant instant) noexcept { return instant.time_since_epoch().count(); }
inline Instant fromNanoseconds(std::int64_t ns) noexcept { return Instant(Duration(ns)); }
inline double toMilliseconds(Duration duration) noexcept { return static_cast<double>(duration.count()) / 1e6; }

// Names this host's monotonic clock as this process sees it: the boot's id plus the process's time namespace, which can
// shift the clock within one host. Empty when neither can be read: then no other rank is assumed to share the clock.
std::string clockDomain();

}  // namespace straggler
