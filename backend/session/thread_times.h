// ThreadTimes: what the kernel's scheduler knows of a thread, in totals since the thread began.
//
// It is read from /proc/self/task/<thread>/schedstat. There is nothing to read once the thread has ended, nor on a kernel
// that keeps no such account: that has no such file, or nothing but zeros in it. Of a thread that is running the kernel
// brings the account up to date at its ticks, so a reading may be old by one (1 to 10 ms). A reading takes some 5 us.
#pragma once

#include <optional>
#include <string>

#include "backend/base/clock.h"

namespace straggler {

struct ThreadTimes {
  Duration cpu{};       // it ran on a processor
  Duration runDelay{};  // it was ready to run, and waited for a processor

  bool operator==(const ThreadTimes&) const = default;
};

// Of a thread of this process, by the kernel's id. `root` is in front of the path (os_account.h). Never throws.
std::optional<ThreadTimes> threadTimes(int thread, const std::string& root = {}) noexcept;

}  // namespace straggler
