// Text without a domain: numbers with a fixed count of decimals, padding, lists, tables. The core has no formatting
// library; these few functions are all that its reports need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace straggler {

// "8.10" for (8.1, 2).
std::string fixed(double value, int decimals);

// `text` with blanks in front, or behind, up to `width` columns; never cut.
std::string padLeft(std::string_view text, std::size_t width);
std::string padRight(std::string_view text, std::size_t width);

// "0, 1, 2" for ({0, 1, 2}, ", ").
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// Text of a stranger's, for a terminal: whatever is no printable ASCII character is a '?'.
std::string printable(std::string_view text);

// "1 rank" for (1, "rank"), "2 ranks" for 2.
std::string plural(std::uint64_t count, const std::string& noun);

// Rows of the same number of cells, at least one: columns as wide as their widest cell, the first to the left, the others
// to the right.
std::string table(const std::vector<std::vector<std::string>>& rows);

// Rank numbers as people write them: "0-3, 6".
std::string rankList(const std::vector<int>& ranks);

}  // namespace straggler
