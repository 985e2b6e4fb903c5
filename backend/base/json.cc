#include "backend/base/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace straggler {
namespace {

std::string quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text.append({'\\', c});
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      text.append(escape.data());
    } else {
      text.push_back(c);
    }
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
