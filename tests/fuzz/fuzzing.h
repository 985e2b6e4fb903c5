// What the fuzzers share: how the parts of an input are told apart, and how a property that does not hold is said.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

namespace straggler {

// Says so to libFuzzer, which then keeps the bytes. An assertion would be compiled out.
inline void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

// Takes an input apart from its beginning on; gives zeros and nothing once it is at its end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  bool empty() const { return left_.empty(); }
  std::span<const std::uint8_t> bytes(std::size_t count) {
    const auto taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  // Least significant byte first.
  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (const std::uint8_t byte : bytes(size)) {
      value |= static_cast<std::uint64_t>(byte) << shift;
      shift += 8;
    }
    return value;
  }
  // Two bytes of length, and what follows.
  std::span<const std::uint8_t> block() { return bytes(number(2)); }
  std::string text() {
    const auto rest = bytes(left_.size());
    return {rest.begin(), rest.end()};
  }

 private:
  std::span<const std::uint8_t> left_;
};

// As RFC 3629 has it: no surrogates, nothing that is longer than it needs to be.
inline bool isUtf8(std::string_view text) {
  constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto first = byte(at++);
    const std::size_t more = first < 0x80 ? 0 : (first >> 5U) == 6 ? 1 : (first >> 4U) == 14 ? 2 : 3;
    if ((first >= 0x80 && first < 0xC0) || first >= 0xF8 || text.size() - at < more) {
      return false;
    }
    std::uint32_t character = more == 0 ? first : first & (0x3FU >> more);
    for (const auto end = at + more; at < end; ++at) {
      if ((byte(at) & 0xC0U) != 0x80) {
        return false;
      }
      character = (character << 6U) | (byte(at) & 0x3FU);
    }
    if (character < kLeast[more] || character > 0x10FFFF || (character >= 0xD800 && character < 0xE000)) {
      return false;
    }
  }
  return true;
}

// What every line of JSON promises whoever reads it.
inline bool isOneLineOfText(std::string_view json) {
  return isUtf8(json) &&
         std::none_of(json.begin(), json.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

}  // namespace straggler
