#include "backend/base/fields.h"

#include <array>
#include <charconv>
#include <cmath>

namespace straggler {

std::string numberText(double value) {
  std::array<char, 32> text{};
  const bool whole = value == std::floor(value) && std::abs(value) <= 1e15;
  const auto format = whole ? std::chars_format::fixed : std::chars_format::general;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format).ptr;
  return {text.data(), end};
}

std::string allowedText(bool whole, double least, double most) {
  return (whole ? "a whole number from " : "a number from ") + numberText(least) + " to " + numberText(most);
}

bool readNumber(std::string_view text, bool whole, double least, double most, double& value) {
  const auto* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && last == end && value >= least && value <= most &&
         (!whole || value == std::floor(value));
}

}  // namespace straggler
