#include "backend/observe/os_counters.h"

#include <set>

#include <gtest/gtest.h>

namespace straggler {
namespace {

TEST(OsCounters, eachHasANameOfItsOwnWithItsUnit) {
  std::set<std::string> names;
  for (const OsCounter counter : allOsCounters()) {
    names.insert(totalField(counter));
    EXPECT_EQ(totalField(counter).ends_with("_us"), isTime(counter));
    EXPECT_EQ(stepField(counter).ends_with("_ms"), isTime(counter));
  }
  EXPECT_EQ(names.size(), kOsCounters);
  EXPECT_EQ(totalField(OsCounter::kQuotaThrottled), "quota_throttled_us");
  EXPECT_EQ(totalField(OsCounter::kDeviceSlowedByPower), "device_slowed_by_power") << "the last";
  EXPECT_EQ(stepField(OsCounter::kBlockIo), "block_io_ms");
  EXPECT_EQ(stepField(OsCounter::kReadBytes), "read_bytes");
}

TEST(OsCounters, differenceIsOfWhatBothKnowAndStatesAreAsTheyAre) {
  OsCounters before;
  OsCounters now;
  before[OsCounter::kReadBytes] = 100;
  now[OsCounter::kReadBytes] = 130;
  before[OsCounter::kMajorFaults] = 5;
  now[OsCounter::kRetransmits] = 7;
  before[OsCounter::kSentBytes] = 9;
  now[OsCounter::kSentBytes] = 8;
  before[OsCounter::kSmClock] = 1980;
  now[OsCounter::kSmClock] = 1200;
  now[OsCounter::kDeviceTemperature] = 60;
  before[OsCounter::kBlockIo] = now[OsCounter::kBlockIo] = 4;
  OsCounters expected;
  expected[OsCounter::kReadBytes] = 30;
  expected[OsCounter::kBlockIo] = 0;
  expected[OsCounter::kSmClock] = 1200;
  expected[OsCounter::kDeviceTemperature] = 60;
  EXPECT_EQ(now.since(before), expected);
}

}  // namespace
}  // namespace straggler
