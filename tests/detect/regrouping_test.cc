#include "backend/detect/regrouping.h"

#include <numeric>

#include <gtest/gtest.h>

namespace straggler {
namespace {

// Steps from `first` on, whose self times are their numbers.
StepWindow window(std::int64_t first, std::size_t steps = 10, std::uint64_t durationUs = 1000) {
  StepWindow made{first, 1, StepsFoundBy::kGraphTask, std::vector<std::uint32_t>(steps), durationUs};
  std::iota(made.selfUs.begin(), made.selfUs.end(), static_cast<std::uint32_t>(first));
  return made;
}

TEST(Regrouping, longerWindowsHaveTheExactSumsOfTheirParts) {
  Regrouping regrouping(1, 20);
  StepWindow first = window(0, 10, 1001);
  StepWindow second = window(10, 10, 2002);
  first.inputUs = 7;
  second.inputUs = 6;
  first.cpuUs = 5;
  first.os[OsCounter::kBlockIo] = 400;
  second.os[OsCounter::kBlockIo] = 100;
  second.os[OsCounter::kReadBytes] = 1;
  first.os[OsCounter::kDeviceTemperature] = 60;
  second.os[OsCounter::kDeviceTemperature] = 70;
  EXPECT_TRUE(regrouping.add(0, first).empty());
  const auto complete = regrouping.add(0, second);
  ASSERT_EQ(complete.size(), 1U);
  EXPECT_EQ(complete[0].selfUs, window(0, 20).selfUs);
  EXPECT_EQ(complete[0].durationUs, 3003U);
  EXPECT_EQ(complete[0].inputUs, 13U);
  EXPECT_EQ(complete[0].cpuUs, std::nullopt) << "of the second half it is not known";
  EXPECT_EQ(complete[0].os[OsCounter::kBlockIo], 500U);
  EXPECT_EQ(complete[0].os[OsCounter::kDeviceTemperature], 65U) << "a state has no sum";
  EXPECT_EQ(complete[0].os[OsCounter::kReadBytes], std::nullopt) << "of the first half it is not known";
  EXPECT_EQ(complete[0].foundBy, StepsFoundBy::kGraphTask);
}

TEST(Regrouping, shorterWindowsHaveTheMeansOfTheOneTheyWereCutFrom) {
  Regrouping regrouping(1, 5);
  const auto complete = regrouping.add(0, window(10, 10, 1000));
  ASSERT_EQ(complete.size(), 2U);
  EXPECT_EQ(complete[1].firstStep, 15);
  EXPECT_EQ(complete[1].selfUs, window(15, 5).selfUs);
  EXPECT_EQ(complete[1].durationUs, 500U);
}

TEST(Regrouping, windowsNeedNotDivideEachOther) {
  Regrouping regrouping(1, 25);
  EXPECT_TRUE(regrouping.add(0, window(0)).empty());
  EXPECT_TRUE(regrouping.add(0, window(10)).empty());
  const auto complete = regrouping.add(0, window(20));
  ASSERT_EQ(complete.size(), 1U);
  EXPECT_EQ(complete[0].selfUs.size(), 25U);
  const auto rest = regrouping.last(0);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->selfUs, window(25, 5).selfUs);
  EXPECT_FALSE(regrouping.last(0)) << "given once";
}

TEST(Regrouping, ranksAreKeptApart) {
  Regrouping regrouping(2, 20);
  EXPECT_TRUE(regrouping.add(0, window(0)).empty());
  EXPECT_TRUE(regrouping.add(1, window(0)).empty());
  EXPECT_EQ(regrouping.add(1, window(10)).size(), 1U);
  EXPECT_EQ(regrouping.add(0, window(10)).size(), 1U);
}

TEST(Regrouping, windowThatLacksAStepIsLeftOutAndCounted) {
  Regrouping regrouping(1, 20);
  regrouping.add(0, window(0));
  EXPECT_TRUE(regrouping.add(0, window(20)).empty()) << "10 to 19 are missing";
  EXPECT_EQ(regrouping.leftOut(), 1U);
  EXPECT_EQ(regrouping.add(0, window(30)).size(), 1U);
  EXPECT_TRUE(regrouping.add(0, window(50)).empty()) << "the beginning is missing";
  EXPECT_FALSE(regrouping.last(0));
}

}  // namespace
}  // namespace straggler
