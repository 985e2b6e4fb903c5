#include "backend/detect/arrival_table.h"

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"

namespace straggler {
namespace {

ArrivalSample sample(std::uint64_t sequence, double arrivalMs = 1, GroupId group = 1) {
  return {{group, sequence, OpKind::kAllReduce}, at(arrivalMs), at(arrivalMs + 1)};
}

TEST(ArrivalTable, operationIsCompleteWhenEveryRankOfItsGroupToldOfIt) {
  ArrivalTable table;
  table.setGroupSize(1, 3);
  EXPECT_FALSE(table.add(0, sample(5, 10)));
  EXPECT_FALSE(table.add(2, sample(5, 12)));
  const auto complete = table.add(1, sample(5, 11));
  ASSERT_TRUE(complete);
  ASSERT_EQ(complete->size(), 3U);
  EXPECT_EQ((*complete)[1].rank, 2);
  EXPECT_EQ((*complete)[1].arrival, at(12));
  EXPECT_EQ((*complete)[1].completed, at(13));
}

TEST(ArrivalTable, operationsAreKeptApartByTheirWholeKey) {
  ArrivalTable table;
  table.setGroupSize(1, 2);
  table.setGroupSize(2, 2);
  EXPECT_FALSE(table.add(0, sample(5, 1, 1)));
  EXPECT_FALSE(table.add(1, sample(5, 1, 2)));
  EXPECT_FALSE(table.add(1, sample(6, 1, 1)));
  ArrivalSample otherKind = sample(5, 1, 1);
  otherKind.key.kind = OpKind::kBroadcast;
  EXPECT_FALSE(table.add(1, otherKind));
  EXPECT_TRUE(table.add(1, sample(5, 1, 1)));
}

TEST(ArrivalTable, rankThatTellsTwiceCountsOnce) {
  ArrivalTable table;
  table.setGroupSize(1, 2);
  EXPECT_FALSE(table.add(0, sample(5, 10)));
  EXPECT_FALSE(table.add(0, sample(5, 20)));
  const auto complete = table.add(1, sample(5, 11));
  ASSERT_TRUE(complete);
  EXPECT_EQ(complete->front().arrival, at(10)) << "the first word counts";
}

TEST(ArrivalTable, wordsThatAreRepeatedNeitherCompleteAnOperationNorStayInIt) {
  ArrivalTable table;
  table.setGroupSize(1, 3);
  for (int repeat = 0; repeat < 10; ++repeat) {
    EXPECT_FALSE(table.add(0, sample(5, 10 + repeat)));
    EXPECT_FALSE(table.add(2, sample(5, 30 + repeat)));
  }
  const auto complete = table.add(1, sample(5, 20));
  ASSERT_TRUE(complete);
  ASSERT_EQ(complete->size(), 3U);
  EXPECT_EQ((*complete)[0].arrival, at(10));
  EXPECT_EQ((*complete)[1].arrival, at(30));
  EXPECT_EQ((*complete)[2].rank, 1);
  EXPECT_EQ(table.held(), 0U);
}

TEST(ArrivalTable, sizeOfTheGroupMayBecomeKnownLate) {
  ArrivalTable table;
  EXPECT_FALSE(table.add(1, sample(5)));
  EXPECT_FALSE(table.add(2, sample(5)));
  table.setGroupSize(1, 3);
  EXPECT_TRUE(table.add(0, sample(5)));
}

TEST(ArrivalTable, operationsThatWaitTooLongAreGivenUpOldestFirst) {
  ArrivalTable table;
  table.setGroupSize(1, 2);
  const std::uint64_t kept = ArrivalTable::kMaxSamples;
  for (std::uint64_t sequence = 0; sequence < kept + 10; ++sequence) {
    table.add(0, sample(sequence));
  }
  EXPECT_EQ(table.givenUp(), 10U);
  EXPECT_FALSE(table.add(1, sample(9))) << "given up";
  EXPECT_TRUE(table.add(1, sample(kept)));
}

TEST(ArrivalTable, whatIsCompleteIsNotHeld) {
  ArrivalTable table;
  table.setGroupSize(1, 2);
  for (std::uint64_t sequence = 0; sequence < 1000; ++sequence) {
    ASSERT_FALSE(table.add(0, sample(sequence)));
    EXPECT_LE(table.held(), 1U);
    ASSERT_TRUE(table.add(1, sample(sequence)));
  }
  EXPECT_EQ(table.held(), 0U);
  EXPECT_EQ(table.givenUp(), 0U);
}

TEST(ArrivalTable, memoryStaysBoundedBehindAnOperationThatNeverCompletes) {
  ArrivalTable table;
  table.setGroupSize(1, 2);
  table.add(0, sample(0));
  for (std::uint64_t sequence = 1; sequence < 2 * ArrivalTable::kMaxSamples; ++sequence) {
    table.add(0, sample(sequence));
    ASSERT_TRUE(table.add(1, sample(sequence)));
  }
  EXPECT_LE(table.held(), ArrivalTable::kMaxSamples);
  EXPECT_EQ(table.givenUp(), 1U);
}

}  // namespace
}  // namespace straggler
