#include "backend/base/format.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace straggler {

std::string fixed(double value, int decimals) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return length > 0 && static_cast<std::size_t>(length) < text.size() ? std::string(text.data()) : std::string("?");
}

std::string padLeft(std::string_view text, std::size_t width) {
  return (text.size() < width ? std::string(width - text.size(), ' ') : std::string()).append(text);
}

std::string padRight(std::string_view text, std::size_t width) {
  std::string padded(text);
  padded.resize(std::max(width, text.size()), ' ');
  return padded;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    result.append(i == 0 ? "" : separator).append(parts[i]);
  }
  return result;
}

std::string printable(std::string_view text) {
  std::string result(text);
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

std::string plural(std::uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = padRight(row.front(), widths.front());
    for (std::size_t i = 1; i < row.size(); ++i) {
      line += "  " + padLeft(row[i], widths[i]);
    }
    text += line + "\n";
  }
  return text;
}

std::string rankList(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) {
      ++last;
    }
    parts.push_back(std::to_string(ranks[first]));
    if (last > first) {
      parts.back() += (last == first + 1 ? ", " : "-") + std::to_string(ranks[last]);
    }
    first = last + 1;
  }
  return join(parts, ", ");
}

}  // namespace straggler
