// Beat: what the root shows of its clock, while ranks of other hosts are asked for theirs (session/clock_beat.h). Not a
// message: one after the other is put in the same place, for all ranks to look at.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/base/clock.h"

namespace straggler {

struct Beat {
  std::uint64_t number = 0;  // each one's is larger than that of the one before
  Instant before{};          // read before this beat was shown
  Instant lastShown{};       // read once the beat before this one could be seen by everybody
  std::vector<int> asked;    // global ranks

  bool operator==(const Beat&) const = default;
};

inline constexpr std::size_t kMaxAsked = 8;

std::vector<std::uint8_t> encodeBeat(const Beat& beat);
// Nothing for what is none: what lies in a store is not trusted.
std::optional<Beat> decodeBeat(std::span<const std::uint8_t> bytes);

}  // namespace straggler
