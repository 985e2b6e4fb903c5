#include "backend/base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace straggler {
namespace {

bool isContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// The length of the UTF-8 character that the text, which is not empty, begins with; 0 if it begins with none.
std::size_t characterLength(std::string_view text) {
  const auto byte = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  std::size_t length = 0;
  if (first >= 0xC2 && first < 0xE0) {
    length = 2;
  } else if (first >= 0xE0 && first < 0xF0) {
    // Not what two bytes could say, nor half of a pair of UTF-16.
    length = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0) ? 0 : 3;
  } else if (first >= 0xF0 && first < 0xF5) {
    // Not what three bytes could say, nor beyond U+10FFFF.
    length = (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90) ? 0 : 4;
  }
  if (text.size() < length || !std::all_of(text.begin() + std::min<std::size_t>(1, length),
                                           text.begin() + static_cast<std::ptrdiff_t>(length), isContinuation)) {
    return 0;
  }
  return length;
}

std::string escaped(unsigned character) {
  std::array<char, 8> escape{};
  std::snprintf(escape.data(), escape.size(), "\\u%04x", character);
  return escape.data();
}

// Control characters, those of U+0080 to U+009F too, are escaped; what is no UTF-8 is replaced, byte for byte.
std::string quoted(std::string_view value) {
  std::string text = "\"";
  while (!value.empty()) {
    const auto length = characterLength(value);
    const auto character = value.substr(0, std::max<std::size_t>(1, length));
    const auto first = static_cast<unsigned char>(character.front());
    if (length == 0) {
      text.append("\\ufffd");
    } else if (first == '"' || first == '\\') {
      text.append({'\\', character.front()});
    } else if (first < 0x20 || first == 0x7F) {
      text.append(escaped(first));
    } else if (first == 0xC2 && static_cast<unsigned char>(character.back()) < 0xA0) {
      text.append(escaped(static_cast<unsigned char>(character.back())));
    } else {
      text.append(character);
    }
    value.remove_prefix(character.size());
  }
  return text + "\"";
}

// The shortest text that reads back as the same number.
std::string number(double value) {
  if (!std::isfinite(value)) {
    return "null";
  }
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), end) : std::string("null");
}

}  // namespace

JsonLine& JsonLine::field(std::string_view name, std::string_view value) { return raw(name, quoted(value)); }
JsonLine& JsonLine::field(std::string_view name, double value) { return raw(name, number(value)); }
JsonLine& JsonLine::field(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }

JsonLine& JsonLine::raw(std::string_view name, const std::string& text) {
  body_.append(body_.empty() ? "" : ",").append(quoted(name)).append(":").append(text);
  return *this;
}

std::string JsonLine::element(const std::string& value) { return quoted(value); }
std::string JsonLine::element(double value) { return number(value); }

}  // namespace straggler
