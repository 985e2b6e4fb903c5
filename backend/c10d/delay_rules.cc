#include "backend/c10d/delay_rules.h"

#include <charconv>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace straggler {
namespace {

[[noreturn]] void refuse(std::string_view field, std::string_view text, const char* why) {
  throw std::invalid_argument("injection rule: " + std::string(field) + "='" + std::string(text) + "' is " + why);
}

template <class T>
void setNumber(T& value, std::string_view field, std::string_view text, T least,
               T largest = std::numeric_limits<T>::max()) {
  const auto* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || last != end) {
    refuse(field, text, "not a number");
  }
  if (error != std::errc() || !(value >= least && value <= largest)) {
    refuse(field, text, "out of bounds");
  }
}

void setField(DelayRule& rule, std::string_view field, std::string_view text) {
  if (field == "rank") {
    setNumber(rule.rank, field, text, -1);
  } else if (field == "ms") {
    setNumber(rule.ms, field, text, 0.0, kMaxDelayMs);
  } else if (field == "probability") {
    setNumber(rule.probability, field, text, 0.0, 1.0);
  } else if (field == "from") {
    setNumber<std::int64_t>(rule.from, field, text, 0);
  } else if (field == "to") {
    setNumber<std::int64_t>(rule.to, field, text, -1);
  } else if (field == "every") {
    setNumber<std::int64_t>(rule.every, field, text, 1);
  } else if (field == "seed") {
    setNumber<std::uint64_t>(rule.seed, field, text, 0);
  } else {
    throw std::invalid_argument("injection rule: unknown field '" + std::string(field) + "'");
  }
}

DelayRule parseRule(const std::string& line) {
  DelayRule rule;
  std::istringstream fields(line);
  for (std::string field; fields >> field;) {
    const auto equals = field.find('=');
    setField(rule, field.substr(0, equals), equals == std::string::npos ? "" : field.substr(equals + 1));
  }
  return rule;
}

}  // namespace

std::vector<DelayRule> parseDelayRules(const std::string& rules) {
  std::vector<DelayRule> parsed;
  std::istringstream lines(rules);
  for (std::string line; std::getline(lines, line);) {
    parsed.push_back(parseRule(line));
  }
  return parsed;
}

}  // namespace straggler
