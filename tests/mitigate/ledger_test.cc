#include "backend/mitigate/ledger.h"

#include <gtest/gtest.h>

namespace straggler {
namespace {

TEST(Ledger, aGradientIsCountedOnceWhateverBecomesOfIt) {
  Ledger ledger;
  ledger.onTime(0);
  ledger.owed(0, 1);
  ledger.dropped(0);
  ledger.owed(0, 3);
  EXPECT_EQ(ledger.total(), (BucketLedger{4, 1, 0, 1, 2, 0, 0}));
  EXPECT_TRUE(ledger.carried(0, 4));
  EXPECT_EQ(ledger.total(), (BucketLedger{4, 1, 2, 1, 0, 3 + 1, 3}));
  EXPECT_FALSE(ledger.carried(0, 5)) << "it is carried once";
}

TEST(Ledger, whatCannotBeCarriedIsDropped) {
  Ledger ledger;
  ledger.owed(0, 1);
  ledger.owed(0, 2);
  ledger.discardLast(0);
  EXPECT_EQ(ledger.total(), (BucketLedger{2, 0, 0, 1, 1, 0, 0}));
  EXPECT_TRUE(ledger.carried(0, 3));
  EXPECT_EQ(ledger.total().maxStaleness, 2U) << "that of the first";
}

TEST(Ledger, theLastThatCannotBeCarriedLeavesNothingOwed) {
  Ledger ledger;
  ledger.owed(0, 1);
  ledger.discardLast(0);
  EXPECT_FALSE(ledger.owes(0));
  EXPECT_FALSE(ledger.carried(0, 2));
  ledger.discardLast(0);
  EXPECT_EQ(ledger.total(), (BucketLedger{1, 0, 0, 1, 0, 0, 0}));
}

TEST(Ledger, bucketsAreApart) {
  Ledger ledger;
  ledger.owed(0, 1);
  ledger.owed(7, 1);
  EXPECT_TRUE(ledger.carried(7, 2));
  EXPECT_TRUE(ledger.owes(0));
  EXPECT_EQ(ledger.buckets().at(0).pending, 1U);
  EXPECT_EQ(ledger.buckets().at(7).late, 1U);
}

}  // namespace
}  // namespace straggler
