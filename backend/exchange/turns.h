// Turns: when a rank may send over a transport that keeps whatever was ever set, such as a file.
//
// Twice a second at first, and after every 256 turns half as often, down to one in 64 s: what a job leaves in the file
// grows with the logarithm of its length. The end of a session is no time to wait for a turn: from then on each is due.
//
//   a job of one minute: 120 turns at most. Of one hour: 256 half a second apart, 256 a second apart, and so on, up to 8 s:
//   about 1,230
//
// Thread safety: none; it belongs to the thread that sends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "backend/base/clock.h"

namespace straggler {

class Turns {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(500);
  static constexpr Duration kLongest = std::chrono::seconds(64);
  static constexpr std::uint64_t kAlike = 256;

  bool due(Instant now) const { return ending_ || !next_ || now >= *next_; }

  void taken(Instant now) {
    next_ = now + length_;
    if (++taken_ % kAlike == 0) {
      length_ = std::min(length_ * 2, kLongest);
    }
  }

  void end() { ending_ = true; }

 private:
  std::optional<Instant> next_;
  Duration length_ = kFirst;
  std::uint64_t taken_ = 0;
  bool ending_ = false;
};

}  // namespace straggler
