#include "backend/detect/statistics.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace straggler {
namespace {

std::vector<double> randomValues(std::mt19937& random, std::size_t count) {
  std::vector<double> values(count);
  for (auto& value : values) {
    value = std::uniform_int_distribution<int>(0, 20)(random);  // with many ties
  }
  return values;
}

double sortedQuantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const auto above = static_cast<std::size_t>(std::ceil(position));
  return values[below] + (position - std::floor(position)) * (values[above] - values[below]);
}

TEST(Quantile, ofNothingIsNothing) { EXPECT_EQ(quantile({}, 0.5), std::nullopt); }

TEST(Quantile, interpolatesBetweenOrderStatistics) {
  EXPECT_DOUBLE_EQ(*quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(*quantile({1, 2, 3, 4}, 0.95), 3.85);
  EXPECT_DOUBLE_EQ(*quantile({7}, 0.95), 7);
}

TEST(Quantile, agreesWithSorting) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const auto values = randomValues(random, 1 + static_cast<std::size_t>(round) % 40);
    for (const double q : {0.0, 0.25, 0.5, 0.95, 1.0}) {
      ASSERT_NEAR(*quantile(values, q), sortedQuantile(values, q), 1e-9) << values.size() << " values, q " << q;
    }
  }
}

TEST(MediansOfOthers, workedExampleOfItsHeader) {
  EXPECT_EQ(mediansOfOthers({1, 2, 10}), (std::vector<double>{6, 5.5, 1.5}));
}

TEST(MediansOfOthers, oneValueHasNoOthers) {
  EXPECT_TRUE(mediansOfOthers({}).empty());
  EXPECT_TRUE(mediansOfOthers({5}).empty());
}

TEST(MediansOfOthers, ofTwoIsTheOther) { EXPECT_EQ(mediansOfOthers({5, 8}), (std::vector<double>{8, 5})); }

TEST(MediansOfOthers, agreesWithLeavingEachValueOut) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    const auto values = randomValues(random, 2 + static_cast<std::size_t>(round) % 30);
    const auto medians = mediansOfOthers(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto others = values;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      ASSERT_DOUBLE_EQ(medians[i], sortedQuantile(others, 0.5));
    }
  }
}

TEST(BinomialTail, knownValues) {
  EXPECT_NEAR(binomialTail(10, 10, 0.5), 1.0 / 1024, 1e-12);
  EXPECT_NEAR(binomialTail(9, 10, 0.5), 11.0 / 1024, 1e-12);
  EXPECT_NEAR(binomialTail(8, 10, 0.5), 56.0 / 1024, 1e-12);
  EXPECT_NEAR(binomialTail(5, 10, 0.5), 638.0 / 1024, 1e-12);
  EXPECT_NEAR(binomialTail(1, 1, 0.5), 0.5, 1e-12);
}

TEST(BinomialTail, nothingTriedSaysNothing) {
  EXPECT_NEAR(binomialTail(0, 0, 0.5), 1, 1e-12);
  EXPECT_NEAR(binomialTail(0, 10, 0.5), 1, 1e-12);
}

TEST(BinomialTail, takesAnyProbability) {
  EXPECT_NEAR(binomialTail(3, 4, 0.25), 4 * 0.75 / 64 + 1.0 / 256, 1e-12);
  EXPECT_NEAR(binomialTail(1, 4, 0.25), 1 - 81.0 / 256, 1e-12);
  EXPECT_NEAR(binomialTail(1, 60, 1.0 / 64), 1 - std::pow(63.0 / 64, 60), 1e-12);
}

TEST(BinomialTail, isCheapForAMillionTrials) {
  EXPECT_NEAR(binomialTail(500'000, 1'000'000, 0.5), 0.5, 1e-3);
  EXPECT_NEAR(binomialTail(10, 1'000'000, 0.5), 1, 1e-12);
  EXPECT_LT(binomialTail(510'000, 1'000'000, 0.5), 1e-80);
}

TEST(BinomialTail, staysAProbabilityForManyTrials) {
  EXPECT_GT(binomialTail(512, 512, 0.5), 0);
  EXPECT_NEAR(binomialTail(256, 512, 0.5), 0.5 + 0.0352 / 2, 1e-3);
  EXPECT_LE(binomialTail(0, 100'000, 0.5), 1);
}

TEST(Mean, isUnknownOfNothingAndThatOfAllThatWasAdded) {
  Mean mean;
  EXPECT_EQ(mean.mean(), std::nullopt);
  for (const double value : {3.0, -1.0, 7.0}) {
    mean.add(value);
  }
  EXPECT_EQ(mean.mean(), 3.0);
  EXPECT_EQ(mean.count(), 3U);
}

TEST(ThinnedSeries, keepsEverythingUntilItIsFull) {
  ThinnedSeries series(4);
  EXPECT_EQ(series.max(), std::nullopt);
  EXPECT_EQ(series.mean(), std::nullopt);
  for (const double value : {3.0, 1.0, 2.0}) {
    series.add(value);
  }
  EXPECT_EQ(series.values(), (std::vector<float>{3, 1, 2}));
  EXPECT_EQ(series.stride(), 1U);
  EXPECT_EQ(series.max(), 3.0);
  EXPECT_EQ(series.mean(), 2.0);
}

TEST(ThinnedSeries, whatIsLeftIsSpreadEvenlyOverAllThatWasAdded) {
  for (const std::size_t capacity : {2U, 3U, 8U, 512U}) {
    ThinnedSeries series(capacity);
    for (int i = 0; i < 20'000; ++i) {
      series.add(i);
      ASSERT_LE(series.values().size(), capacity);
      ASSERT_GE(2 * series.values().size() + 1, std::min<std::size_t>(capacity, static_cast<std::size_t>(i) + 1));
    }
    for (std::size_t place = 0; place < series.values().size(); ++place) {
      ASSERT_EQ(series.values()[place], static_cast<float>(place * series.stride())) << "capacity " << capacity;
    }
    EXPECT_EQ(series.count(), 20'000U);
    EXPECT_EQ(series.max(), 19'999.0);
    EXPECT_EQ(series.sum(), 20'000.0 * 19'999 / 2);
  }
}

TEST(ThinnedSeries, maximumOfNegativeValuesIsNotZero) {
  ThinnedSeries series;
  series.add(-3);
  series.add(-2);
  EXPECT_EQ(series.max(), -2.0);
}

TEST(ThinnedSeries, quantileIsThatOfWhatIsKept) {
  ThinnedSeries series(64);
  for (int i = 0; i <= 10'000; ++i) {
    series.add(i);
  }
  EXPECT_NEAR(*series.quantile(0.5), 5000, 200);
  EXPECT_NEAR(*series.quantile(0.95), 9500, 200);
}

}  // namespace
}  // namespace straggler
