// Damage to bytes, as a torn write or a hostile peer would do it: up to four bytes changed, flipped, left out or put in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace straggler {

inline std::vector<std::uint8_t> damaged(std::vector<std::uint8_t> bytes, std::mt19937& random) {
  const auto below = [&random](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (std::size_t times = 1 + below(4); times > 0 && !bytes.empty(); --times) {
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size()));
    switch (below(4)) {
      case 0:
        *place = static_cast<std::uint8_t>(below(256));
        break;
      case 1:
        *place = static_cast<std::uint8_t>(*place ^ (1U << below(8)));
        break;
      case 2:
        bytes.erase(place);
        break;
      default:
        bytes.insert(place, static_cast<std::uint8_t>(below(2) == 0 ? 0xFF : below(256)));
    }
  }
  return bytes;
}

}  // namespace straggler
