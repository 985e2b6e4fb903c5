#include "backend/base/format.h"

#include <limits>

#include <gtest/gtest.h>

namespace straggler {
namespace {

TEST(Format, fixedKeepsTheDecimals) {
  EXPECT_EQ(fixed(8.1, 2), "8.10");
  EXPECT_EQ(fixed(-0.5, 1), "-0.5");
  EXPECT_EQ(fixed(3, 0), "3");
}

TEST(Format, fixedOfANumberTooLongToShowIsAQuestionMark) {
  EXPECT_EQ(fixed(std::numeric_limits<double>::max(), 2), "?");
}

TEST(Format, paddingNeverCuts) {
  EXPECT_EQ(padLeft("ab", 4), "  ab");
  EXPECT_EQ(padRight("ab", 4), "ab  ");
  EXPECT_EQ(padLeft("abcdef", 4), "abcdef");
  EXPECT_EQ(padRight("abcdef", 4), "abcdef");
}

TEST(Format, joinPutsTheSeparatorBetweenAllParts) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join({"", "b", ""}, ", "), ", b, ");
}

TEST(Format, pluralIsOfEveryNumberButOne) {
  EXPECT_EQ(plural(0, "slot"), "0 slots");
  EXPECT_EQ(plural(1, "slot"), "1 slot");
  EXPECT_EQ(plural(2, "slot"), "2 slots");
}

TEST(Format, tableIsAsWideAsItsWidestCells) {
  EXPECT_EQ(table({{"rank", "host"}, {"1", "node-a"}, {"100000", "b"}}),
            "rank      host\n"
            "1       node-a\n"
            "100000       b\n");
}

TEST(Format, rankListShortensRunsOfThreeAndMore) {
  EXPECT_EQ(rankList({}), "");
  EXPECT_EQ(rankList({5}), "5");
  EXPECT_EQ(rankList({0, 1}), "0, 1");
  EXPECT_EQ(rankList({0, 1, 2, 3, 6}), "0-3, 6");
  EXPECT_EQ(rankList({1, 3, 5, 6, 7}), "1, 3, 5-7");
}

}  // namespace
}  // namespace straggler
