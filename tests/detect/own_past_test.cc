#include "backend/detect/own_past.h"

#include <cmath>

#include <gtest/gtest.h>

namespace straggler {
namespace {

TEST(OwnPast, commonIsTheLargerOfWhatIsAddedAndWhatIsStretched) {
  EXPECT_DOUBLE_EQ(commonMs(30, {{72, 60}, {48, 40}}), 10) << "medians of 12 and 8, and of 30 times 0.2 each";
  EXPECT_DOUBLE_EQ(commonMs(60, {{36, 30}, {24, 20}}), 12) << "60 times 0.2";
}

TEST(OwnPast, othersThatAreFasterGrantNothing) {
  EXPECT_DOUBLE_EQ(commonMs(30, {{20, 30}}), 0);
  EXPECT_DOUBLE_EQ(commonMs(30, {}), 0) << "nothing is known of others";
}

TEST(OwnPast, excessIsOverThePastAndWhatIsCommon) {
  const WindowRow row{10, {RankWindow{{39, 40, 41, 40, 140}, 60}}, 1};
  const WindowComparison window = compareWithPast(row, 30, 4);
  EXPECT_DOUBLE_EQ(window.ranks[0].excessMs, 6);
  EXPECT_DOUBLE_EQ(window.ranks[0].meanExcessMs, 26);
  EXPECT_EQ(window.ranks[0].stepExcessMs, (std::vector<double>{5, 6, 7, 6, 106}));
  EXPECT_NEAR(window.noiseMs, 1.2533 * 1.4826 * 1 / std::sqrt(5.0), 1e-9);
}

TEST(OwnPast, pastIsKnownAfterFiveWindowsAndOfTheLastFifty) {
  OwnPast past;
  for (int i = 0; i < 4; ++i) {
    past.add(30);
  }
  EXPECT_EQ(past.medianMs(), std::nullopt);
  past.add(30);
  EXPECT_EQ(past.medianMs(), 30);
  for (int i = 0; i < 50; ++i) {
    past.add(40);
  }
  EXPECT_EQ(past.medianMs(), 40);
}

}  // namespace
}  // namespace straggler
