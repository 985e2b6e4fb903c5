#include "backend/detect/rules.h"

#include <gtest/gtest.h>

namespace straggler {
namespace {

// Whether a rank that takes `excess` more than the others' 1 fires.
bool fires(Rule rule, double multiplier, std::size_t ranks, double excess) {
  std::vector<double> own(ranks, 1.0);
  own.front() = 1 + excess;
  return own.front() > multiplier * reference(rule, own);
}

TEST(Rules, smallestExcessIsWhereTheRuleBeginsToFire) {
  for (const Rule rule : {Rule::kMeanMultiple, Rule::kMedian}) {
    for (const std::size_t ranks : {2U, 3U, 4U, 5U, 8U, 64U}) {
      for (const double multiplier : {1.2, 1.5, 2.0, 3.0}) {
        const auto smallest = smallestExcess(rule, multiplier, ranks);
        SCOPED_TRACE(std::string(toString(rule)) + " " + std::to_string(ranks) + " " + std::to_string(multiplier));
        if (smallest) {
          EXPECT_FALSE(fires(rule, multiplier, ranks, *smallest - 1e-6));
          EXPECT_TRUE(fires(rule, multiplier, ranks, *smallest + 1e-6));
        } else {
          EXPECT_FALSE(fires(rule, multiplier, ranks, 1e9));
        }
      }
    }
  }
}

TEST(Rules, twiceTheMeanSeesOneOfFourRanksFromThreeTimesTheTimeOn) {
  EXPECT_NEAR(*smallestExcess(Rule::kMeanMultiple, 2, 4), 2, 1e-12);
  EXPECT_NEAR(*smallestExcess(Rule::kMovingAverage, 2, 4), 1, 1e-12);
}

TEST(Rules, twiceTheMeanCanNeverNameOneOfTwoRanksAndSaysSo) {
  EXPECT_EQ(smallestExcess(Rule::kMeanMultiple, 2, 2), std::nullopt);
  EXPECT_EQ(smallestExcess(Rule::kMedian, 2, 2), std::nullopt);
  const auto text = describe(Rule::kMeanMultiple, 2, 2, 0.5, 0.03);
  EXPECT_NE(text.find("cannot name anybody with 2 ranks"), std::string::npos) << text;
  EXPECT_NE(text.find("STRAGGLER_MULTIPLIER below 2"), std::string::npos) << text;
}

TEST(Rules, descriptionTellsTheSmallestExcess) {
  EXPECT_EQ(
      describe(Rule::kMeanMultiple, 2, 4, 0.5, 0.03),
      "rule mean_multiple with multiplier 2.00: with 4 ranks, the smallest excess that it can see is 200 % more own "
      "time than the others");
  EXPECT_EQ(
      describe(Rule::kSelfTime, 2, 4, 0.5, 0.03),
      "rule self_time: a rank is named from an excess of 3 % of the step on, at least 0.5 ms, and above the noise");
}

TEST(Rules, namesAreReadBack) {
  for (const Rule rule : {Rule::kSelfTime, Rule::kMeanMultiple, Rule::kMovingAverage, Rule::kMedian}) {
    EXPECT_EQ(ruleFromString(toString(rule)), rule);
  }
  EXPECT_EQ(ruleFromString("Median"), std::nullopt);
}

}  // namespace
}  // namespace straggler
