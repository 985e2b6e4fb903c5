// Fetch: from begin to end the training thread was inside a DataLoader, for its next batch. On the rank's own monotonic
// clock, as an operation's times are.
#pragma once

#include "backend/base/clock.h"

namespace straggler {

struct Fetch {
  Instant begin{};
  Instant end{};

  bool operator==(const Fetch&) const = default;
};

}  // namespace straggler
