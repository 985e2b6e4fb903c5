#include "backend/base/json.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace straggler {
namespace {

std::string only(const JsonLine& line) { return line.text(); }

TEST(Json, emptyObject) { EXPECT_EQ(JsonLine().text(), "{}"); }

TEST(Json, fieldsKeepTheirOrderAndType) {
  JsonLine line;
  line.field("type", "verdict").field("ranks", std::vector<int>{2, 0}).field("excess_ms", 8.1).field("final", true);
  EXPECT_EQ(line.text(), R"({"type":"verdict","ranks":[2,0],"excess_ms":8.1,"final":true})");
}

TEST(Json, quotesBackslashesAndControlCharactersAreEscaped) {
  EXPECT_EQ(only(JsonLine().field("a", "say \"hi\" \\ \n\t\x01")), R"({"a":"say \"hi\" \\ \u000a\u0009\u0001"})");
  EXPECT_EQ(only(JsonLine().field("a", std::string("nul\0", 4))), R"({"a":"nul\u0000"})");
  EXPECT_EQ(only(JsonLine().field("q\"", 1)), R"({"q\"":1})");
}

TEST(Json, textBeyondAsciiIsPassedOnUnchanged) {
  EXPECT_EQ(only(JsonLine().field("a", "größe €")), "{\"a\":\"größe €\"}");
}

TEST(Json, whatIsNoUtf8IsReplacedByteForByte) {
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"a\xff"
            "b",
            R"(a\ufffdb)"},                    // never in UTF-8
           {"\x80", R"(\ufffd)"},              // the middle of a character
           {"\xc3", R"(\ufffd)"},              // its beginning
           {"\xe2\x82|", R"(\ufffd\ufffd|)"},  // all but its end
           {"\xc0\xaf", R"(\ufffd\ufffd)"},    // longer than it needs to be
           {"\xe0\x9f\xbf", R"(\ufffd\ufffd\ufffd)"},
           {"\xf0\x8f\xbf\xbf", R"(\ufffd\ufffd\ufffd\ufffd)"},
           {"\xed\xa0\x80", R"(\ufffd\ufffd\ufffd)"},            // half of a pair
           {"\xf4\x90\x80\x80", R"(\ufffd\ufffd\ufffd\ufffd)"},  // beyond the last
           {"\xf5\x80\x80\x80", R"(\ufffd\ufffd\ufffd\ufffd)"},
           {"\xf4\x8f\xbf\xbf \xed\x9f\xbf \xee\x80\x80", "\xf4\x8f\xbf\xbf \xed\x9f\xbf \xee\x80\x80"}}) {
    EXPECT_EQ(only(JsonLine().field("a", text)), "{\"a\":\"" + said + "\"}");
  }
}

TEST(Json, controlCharactersBeyondAsciiAreEscapedToo) {
  EXPECT_EQ(only(JsonLine().field("a", "\x7f \xc2\x9b \xc2\xa0")), "{\"a\":\"\\u007f \\u009b \xc2\xa0\"}");
}

TEST(Json, numberThatIsNotFiniteIsNull) {
  for (const double value :
       {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(only(JsonLine().field("a", value)), R"({"a":null})");
    EXPECT_EQ(only(JsonLine().field("a", std::vector<double>{value, 1.5})), R"({"a":[null,1.5]})");
  }
}

TEST(Json, absentOptionalIsNullAndNeverZero) {
  EXPECT_EQ(only(JsonLine().field("a", std::optional<double>())), R"({"a":null})");
  EXPECT_EQ(only(JsonLine().field("a", std::optional<std::int64_t>())), R"({"a":null})");
  EXPECT_EQ(only(JsonLine().field("a", std::optional(0.0))), R"({"a":0})");
}

TEST(Json, numbersReadBackAsTheSameNumber) {
  for (const double value : {0.1, 1e-300, 1.0 / 3, 123456789.125, -2.5e20}) {
    const std::string text = only(JsonLine().field("a", value));
    EXPECT_EQ(std::stod(text.substr(5)), value) << text;
  }
}

TEST(Json, integersOfEveryWidthAreExact) {
  EXPECT_EQ(only(JsonLine().field("a", std::numeric_limits<std::int64_t>::min())), R"({"a":-9223372036854775808})");
  EXPECT_EQ(only(JsonLine().field("a", std::numeric_limits<std::uint64_t>::max())), R"({"a":18446744073709551615})");
}

TEST(Json, objectsNest) {
  const std::vector<JsonLine> rows = {JsonLine().field("x", 1), JsonLine()};
  EXPECT_EQ(only(JsonLine().field("rows", rows).field("inner", JsonLine().field("y", "z"))),
            R"({"rows":[{"x":1},{}],"inner":{"y":"z"}})");
}

TEST(Json, listsOfTextAreQuoted) {
  EXPECT_EQ(only(JsonLine().field("a", std::vector<std::string>{"x", "y\""})), R"({"a":["x","y\""]})");
  EXPECT_EQ(only(JsonLine().field("a", std::vector<std::string>{})), R"({"a":[]})");
}

}  // namespace
}  // namespace straggler
