#include "backend/detect/os_evidence.h"

#include <gtest/gtest.h>

namespace straggler {
namespace {

OsEvidence with(OsCounter counter, double value) {
  OsEvidence made;
  made.set(counter, value);
  return made;
}

TEST(OsEvidence, isAStepAndTimesAreInMilliseconds) {
  OsCounters counters;
  counters[OsCounter::kBlockIo] = 60'000;
  counters[OsCounter::kReadBytes] = 5'000;
  counters[OsCounter::kMajorFaults] = 0;
  counters[OsCounter::kSmClock] = 1980;
  const OsEvidence made(counters, 10);
  EXPECT_EQ(made[OsCounter::kBlockIo], 6);
  EXPECT_EQ(made[OsCounter::kReadBytes], 500);
  EXPECT_EQ(made[OsCounter::kMajorFaults], 0);
  EXPECT_EQ(made[OsCounter::kSmClock], 1980) << "a state";
  EXPECT_EQ(made[OsCounter::kSentBytes], std::nullopt);
}

TEST(OsEvidence, withoutStepsOrCountersThereIsNone) {
  OsCounters counters;
  counters[OsCounter::kReadBytes] = 5'000;
  EXPECT_TRUE(OsEvidence(counters, 0).empty());
  EXPECT_TRUE(OsEvidence(OsCounters{}, 10).empty());
  EXPECT_FALSE(OsEvidence(counters, 10).empty());
}

TEST(RecentOs, meanIsOfTheLastWindowsThatHaveIt) {
  RecentOs recent(3);
  EXPECT_TRUE(recent.mean().rank.empty());
  for (const double ms : {100.0, 0.0, 10.0}) {
    recent.add({with(OsCounter::kBlockIo, ms), with(OsCounter::kBlockIo, ms / 2)});
  }
  recent.add({with(OsCounter::kReadBytes, 5), {}});
  EXPECT_EQ(recent.mean().rank[OsCounter::kBlockIo], 5) << "the oldest is gone, the newest has none";
  EXPECT_EQ(recent.mean().peers[OsCounter::kBlockIo], 2.5);
  EXPECT_EQ(recent.mean().rank[OsCounter::kReadBytes], 5);
  EXPECT_EQ(recent.mean().peers[OsCounter::kReadBytes], std::nullopt);
  recent.clear();
  EXPECT_TRUE(recent.mean().rank.empty());
}

}  // namespace
}  // namespace straggler
