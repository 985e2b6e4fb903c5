// JsonLine: writes one JSON object on one line. Writing only: what is read back is read by Python's json.
//
// Text becomes UTF-8 whatever it was: names come from other ranks, and who reads a line must be able to.
// A number that is not finite, and an absent optional, is written as null: never as 0.
//
//   JsonLine line;
//   line.field("type", "verdict").field("ranks", std::vector<int>{2}).field("excess_ms", 8.1);
//   line.text()  ->  {"type":"verdict","ranks":[2],"excess_ms":8.1}
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace straggler {

class JsonLine {
 public:
  JsonLine& field(std::string_view name, std::string_view value);
  JsonLine& field(std::string_view name, const char* value) { return field(name, std::string_view(value)); }
  JsonLine& field(std::string_view name, const std::string& value) { return field(name, std::string_view(value)); }
  JsonLine& field(std::string_view name, double value);
  JsonLine& field(std::string_view name, bool value);
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) JsonLine& field(std::string_view name, Integer value) {
    return raw(name, std::to_string(value));
  }
  template <class T>
  JsonLine& field(std::string_view name, const std::optional<T>& value) {
    return value ? field(name, *value) : raw(name, "null");
  }
  JsonLine& field(std::string_view name, const JsonLine& object) { return raw(name, object.text()); }
  template <class T>
  JsonLine& field(std::string_view name, const std::vector<T>& values) {
    std::string text = "[";
    for (const auto& value : values) {
      text.append(text.size() > 1 ? "," : "").append(element(value));
    }
    return raw(name, text + "]");
  }

  // The object, without a newline.
  std::string text() const { return "{" + body_ + "}"; }

 private:
  JsonLine& raw(std::string_view name, const std::string& text);
  static std::string element(const std::string& value);
  static std::string element(double value);
  static std::string element(const JsonLine& value) { return value.text(); }
  template <std::integral Integer>
  static std::string element(Integer value) {
    return std::to_string(value);
  }

  std::string body_;
};

}  // namespace straggler
