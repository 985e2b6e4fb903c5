#include "backend/exchange/messages.h"

#include <bit>

namespace straggler {

std::uint8_t sizeClassOf(std::uint64_t bytes) { return static_cast<std::uint8_t>(std::bit_width(bytes)); }

}  // namespace straggler
