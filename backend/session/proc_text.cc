#include "backend/session/proc_text.h"

#include <algorithm>
#include <charconv>

namespace straggler::proc {
namespace {

constexpr std::string_view kBlanks = " \t\n";

// What lies before `end`, which goes too. A line that does not end was torn, and is none.
std::optional<std::string_view> before(std::string_view& text, char end) noexcept {
  const auto place = text.find(end);
  if (place == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view head = text.substr(0, place);
  text.remove_prefix(place + 1);
  return head;
}

bool contains(std::string_view list, std::string_view member) noexcept {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == member) {
      return true;
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

std::optional<std::uint64_t> number(std::string_view word) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(value) : std::nullopt;
}

std::string_view nextWord(std::string_view& text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, std::min(text.find_first_of(kBlanks), text.size()));
  text.remove_prefix(word.size());
  return word;
}

std::string_view nextLine(std::string_view& text) noexcept {
  const auto line = before(text, '\n');
  if (!line) {
    text = {};
  }
  return line.value_or(std::string_view());
}

std::optional<std::uint64_t> valueOf(std::string_view text, std::string_view name) noexcept {
  while (!text.empty()) {
    std::string_view line = nextLine(text);
    if (nextWord(line) == name) {
      return number(nextWord(line));
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> statField(std::string_view text, int field) noexcept {
  std::string_view line = text;
  const auto name = line.rfind(')');
  if (name == std::string_view::npos || text.back() != '\n' || field < kStatState) {
    return std::nullopt;
  }
  line.remove_prefix(name + 1);
  std::string_view word;
  for (int at = kStatState; at <= field; ++at) {
    word = nextWord(line);
  }
  return number(word);
}

std::optional<std::uint64_t> pressureTotal(std::string_view text, std::string_view line) noexcept {
  constexpr std::string_view kTotal = "total=";
  while (!text.empty()) {
    std::string_view words = nextLine(text);
    if (nextWord(words) != line) {
      continue;
    }
    for (std::string_view word = nextWord(words); !word.empty(); word = nextWord(words)) {
      if (word.substr(0, kTotal.size()) == kTotal) {
        return number(word.substr(kTotal.size()));
      }
    }
  }
  return std::nullopt;
}

// Two lines of headings; then a line an interface: its name, eight numbers received, eight sent, bytes first.
std::optional<NetworkBytes> networkBytes(std::string_view text) noexcept {
  constexpr int kSentBytes = 8;
  NetworkBytes sum;
  bool any = false;
  while (!text.empty()) {
    std::string_view line = nextLine(text);
    const auto name = before(line, ':');
    if (!name) {
      continue;
    }
    std::string_view trimmed = *name;
    if (nextWord(trimmed) == "lo") {
      any = true;
      continue;
    }
    const auto received = number(nextWord(line));
    for (int skipped = 1; skipped < kSentBytes; ++skipped) {
      nextWord(line);
    }
    const auto sent = number(nextWord(line));
    if (!received || !sent) {
      return std::nullopt;
    }
    any = true;
    sum.received += *received;
    sum.sent += *sent;
  }
  return any ? std::optional(sum) : std::nullopt;
}

// A line of headings, then one of values in the same order.
std::optional<std::uint64_t> protocolValue(std::string_view text, std::string_view protocol,
                                           std::string_view name) noexcept {
  while (!text.empty()) {
    std::string_view headings = nextLine(text);
    if (nextWord(headings) != protocol) {
      continue;
    }
    std::string_view values = nextLine(text);
    if (nextWord(values) != protocol) {
      return std::nullopt;
    }
    for (std::string_view heading = nextWord(headings); !heading.empty(); heading = nextWord(headings)) {
      const std::string_view value = nextWord(values);
      if (heading == name) {
        return number(value);
      }
    }
    return std::nullopt;
  }
  return std::nullopt;
}

// A line a hierarchy: number, controllers, path, with colons between.
std::optional<GroupPath> groupPath(std::string_view text, std::string_view controller) noexcept {
  while (!text.empty()) {
    std::string_view line = nextLine(text);
    const auto hierarchy = before(line, ':');
    const auto controllers = hierarchy ? before(line, ':') : std::nullopt;
    if (!controllers || line.empty() || line.front() != '/') {
      continue;
    }
    if (controller.empty() ? controllers->empty() : contains(*controllers, controller)) {
      return GroupPath{*controllers, line};
    }
  }
  return std::nullopt;
}

}  // namespace straggler::proc
