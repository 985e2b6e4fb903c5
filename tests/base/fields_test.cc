#include "backend/base/fields.h"

#include <array>

#include <gtest/gtest.h>

namespace straggler {
namespace {

struct Oven {
  double heat = 0.5;
  std::int64_t minutes = 20;
  std::size_t trays = 2;
  bool fan = false;
};

bool setMode(Oven& oven, std::string_view word) {
  oven.fan = word == "fan";
  return word == "fan" || word == "still";
}

constexpr std::array<Field<Oven>, 4> kTable = {{
    {"heat", &Oven::heat, 0, 1, "of the most", "how hot"},
    {"minutes", &Oven::minutes, -5, 90, "min", "how long"},
    {"trays", &Oven::trays, 1, 4, "", "how many"},
    {"mode",
     ChoiceMember<Oven>{"fan or still", setMode,
                        [](const Oven& o) -> std::string_view { return o.fan ? "fan" : "still"; }},
     0, 0, "", "how"},
}};

// The text of the error, empty if there is none.
std::string errorOf(std::string_view name, std::string_view value) {
  Oven oven;
  try {
    setField<Oven>(kTable, oven, name, value);
  } catch (const FieldError& error) {
    return error.what();
  }
  return "";
}

TEST(Fields, valuesOfEveryTypeAreSet) {
  Oven oven;
  setField<Oven>(kTable, oven, "heat", "0.25");
  setField<Oven>(kTable, oven, "minutes", "-5");
  setField<Oven>(kTable, oven, "trays", "4");
  setField<Oven>(kTable, oven, "mode", "fan");
  EXPECT_EQ(oven.heat, 0.25);
  EXPECT_EQ(oven.minutes, -5);
  EXPECT_EQ(oven.trays, 4U);
  EXPECT_TRUE(oven.fan);
}

TEST(Fields, whatIsNotAllowedIsRefusedWithWhatIs) {
  for (const char* bad : {"1.01", "-0.1", "", "half", "0.5 ", "nan", "inf", "0.5x"}) {
    EXPECT_EQ(errorOf("heat", bad), "heat=" + std::string(bad) + " is not valid; allowed: a number from 0 to 1");
  }
  for (const char* bad : {"1.5", "0", "5", "-1", "1e99"}) {
    EXPECT_EQ(errorOf("trays", bad),
              "trays=" + std::string(bad) + " is not valid; allowed: a whole number from 1 to 4");
  }
  EXPECT_EQ(errorOf("mode", "steam"), "mode=steam is not valid; allowed: fan or still");
  EXPECT_EQ(errorOf("colour", "1"), "'colour' is not known; known are heat, minutes, trays, mode");
}

TEST(Fields, whatIsRefusedChangesNothing) {
  Oven oven;
  EXPECT_THROW(setField<Oven>(kTable, oven, "heat", "7"), FieldError);
  EXPECT_EQ(oven.heat, 0.5);
}

TEST(Fields, rowsShowValuesThatCanBeSetAgain) {
  const Oven oven{.heat = 1e-4, .minutes = 7};
  Oven again;
  for (const auto& row : fieldRows<Oven>(kTable, oven)) {
    setField<Oven>(kTable, again, row.name, row.value);
  }
  EXPECT_EQ(again.heat, 1e-4);
  EXPECT_EQ(again.minutes, 7);
  EXPECT_EQ(fieldRows<Oven>(kTable, oven).front().unit, "of the most");
}

TEST(Fields, numbersAreWrittenAsPeopleWriteThem) {
  EXPECT_EQ(numberText(100000), "100000");
  EXPECT_EQ(numberText(0.5), "0.5");
  EXPECT_EQ(numberText(1e12), "1000000000000");
}

}  // namespace
}  // namespace straggler
