// Varint writing and reading, for codecs. The reader turns into "failed" at the first byte that is not there or
// makes no sense, and stays so; what it returns from then on is zero.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace straggler {

class ByteWriter {
 public:
  void byte(std::uint8_t value) { bytes_.push_back(value); }
  // LEB128: seven bits a byte, least significant first.
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) {
      bytes_.push_back(static_cast<std::uint8_t>(value | 0x80U));
    }
    bytes_.push_back(static_cast<std::uint8_t>(value));
  }
  // Zigzag: small magnitudes of either sign are short.
  void signedVarint(std::int64_t value) {
    varint((static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63));
  }
  // Its eight bytes, least significant first.
  void number(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bytes_.push_back(static_cast<std::uint8_t>(bits >> shift));
    }
  }
  // Text beyond the limit is cut, before the UTF-8 character that would be cut in two.
  void text(std::string_view value, std::size_t limit) {
    if (value.size() > limit) {
      const auto inCharacter = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
      while (limit > 0 && inCharacter(value[limit])) {
        --limit;
      }
      value = value.substr(0, limit);
    }
    varint(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint8_t byte() {
    if (bytes_.empty()) {
      failed_ = true;
      return 0;
    }
    const std::uint8_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t next = byte();
      value |= (next & 0x7FU) << shift;
      if (next < 0x80) {
        return failed_ ? 0 : value;
      }
    }
    failed_ = true;
    return 0;
  }
  std::int64_t signedVarint() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>((value >> 1U) ^ (~(value & 1U) + 1));
  }
  double number() {
    std::uint64_t bits = 0;
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bits |= static_cast<std::uint64_t>(byte()) << shift;
    }
    return failed_ ? 0 : std::bit_cast<double>(bits);
  }
  // A number of things to follow, each at least one byte long.
  std::size_t count(std::size_t limit) {
    const auto value = static_cast<std::size_t>(atMost(limit));
    if (value > bytes_.size()) {
      failed_ = true;
    }
    return failed_ ? 0 : value;
  }
  std::uint32_t atMost32(std::uint32_t limit) { return static_cast<std::uint32_t>(atMost(limit)); }
  std::string text(std::size_t limit) {
    const std::size_t length = count(limit);
    const std::string value(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(length));
    bytes_ = bytes_.subspan(length);
    return value;
  }
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }
  bool atEnd() const { return bytes_.empty(); }

 private:
  std::uint64_t atMost(std::uint64_t limit) {
    const std::uint64_t value = varint();
    if (value > limit) {
      failed_ = true;
    }
    return failed_ ? 0 : value;
  }

  std::span<const std::uint8_t> bytes_;
  bool failed_ = false;
};

}  // namespace straggler
