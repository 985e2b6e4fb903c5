// MitigationMode: what becomes of a gradient that comes too late for its slot.
#pragma once

#include <cstdint>

namespace straggler {

enum class MitigationMode : std::uint8_t {
  kCarry,  // it is added to the rank's next contribution: applied exactly once, later
  kDrop,   // it is discarded, and the sum of the others scaled up to stand for all
};

}  // namespace straggler
