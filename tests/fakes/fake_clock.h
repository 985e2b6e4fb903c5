// FakeClock: a clock that stands still until a test moves it.
#pragma once

#include "backend/base/clock.h"

namespace straggler {

class FakeClock final : public Clock {
 public:
  explicit FakeClock(Instant start = fromNanoseconds(0)) : now_(start) {}

  Instant now() const noexcept override { return now_; }
  void advance(Duration duration) { now_ += duration; }

 private:
  Instant now_;
};

}  // namespace straggler
