#include "backend/detect/evidence_text.h"

#include <gtest/gtest.h>

namespace straggler {
namespace {

Evidence evidence(std::optional<double> input, std::optional<double> cpu, std::optional<double> runDelay) {
  Evidence made;
  made.inputMs = input;
  made.cpuMs = cpu;
  made.runDelayMs = runDelay;
  return made;
}

void set(Evidence& evidence, OsCounter counter, double rank, double peers) {
  evidence.os.set(counter, rank);
  evidence.osPeers.set(counter, peers);
}

TEST(EvidenceText, countersThatAreNoOtherThanThePeersAreNotTold) {
  Evidence made = evidence(7.9, 0.1, 0.0);
  for (const OsCounter counter : allOsCounters()) {
    set(made, counter, isState(counter) ? 1 : 1000, isState(counter) ? 1 : 900);
  }
  EXPECT_EQ(describeOs(made, 8000), "");
  EXPECT_EQ(describeOs(Evidence{}, 8), "");
}

TEST(EvidenceText, clausesSayWhatTheRankHasBesideItsPeers) {
  Evidence disk = evidence(6.5, 0.1, 0.0);
  set(disk, OsCounter::kBlockIo, 6.1, 0.1);
  set(disk, OsCounter::kReadBytes, 240e3, 230e3);
  set(disk, OsCounter::kIoFullPressure, 0.5, 0.4);
  EXPECT_EQ(describeOs(disk, 7),
            "its disk: blocked in I/O for 6.1 ms a step, peers 0.1; 0.2 MB read a step, peers 0.2");

  Evidence readsMore = evidence(6.5, 0.1, 0.0);
  set(readsMore, OsCounter::kReadBytes, 0, 0);
  set(readsMore, OsCounter::kReadCallBytes, 40e6, 2e6);
  EXPECT_EQ(describeOs(readsMore, 7),
            "its disk: 0.0 MB read a step, peers 0.0; 40.0 MB a step asked of read(), peers 2.0");

  Evidence quota = evidence(0.0, 0.1, 6.5);
  set(quota, OsCounter::kQuotaThrottles, 0.8, 0);
  set(quota, OsCounter::kInvoluntarySwitches, 2.3, 0.4);
  EXPECT_EQ(
      describeOs(quota, 7),
      "throttled by its CPU quota 0.8 times a step, peers 0.0; taken from its processor 2.3 times a step, peers 0.4");

  Evidence other = evidence(0.0, 0.1, 0.0);
  set(other, OsCounter::kInvoluntarySwitches, 2.3, 0.4);
  set(other, OsCounter::kMajorFaults, 12, 0);
  set(other, OsCounter::kMemoryPressure, 3, 0.5);
  set(other, OsCounter::kRetransmits, 5, 1);
  EXPECT_EQ(
      describeOs(other, 7),
      "its memory: 12.0 pages read from disk a step, peers 0.0; tasks stalled for want of memory for 3.0 ms a step, "
      "peers 0.5; its network: 5.0 TCP segments sent again a step, peers 1.0");
}

TEST(EvidenceText, deviceSpeaksWhereItIsSlowerOrSlowedDownMoreOften) {
  Evidence made = evidence(0.0, 0.1, 0.0);
  set(made, OsCounter::kSmClock, 1215, 1980);
  set(made, OsCounter::kDeviceTemperature, 87, 61);
  set(made, OsCounter::kDeviceSlowedByHeat, 0.8, 0.1);
  set(made, OsCounter::kDeviceSlowedByPower, 0.3, 0.2);
  EXPECT_EQ(describeOs(made, 7),
            "its device: SM clock at 1215.0 MHz, peers 1980.0; slowed down by heat in 80.0 % of the "
            "readings, peers 10.0; at 87.0 degrees, peers 61.0");
}

TEST(EvidenceText, descriptionNamesOnlyWhatWasMeasured) {
  EXPECT_EQ(describe(evidence(7.94, std::nullopt, 0.01)), "7.9 ms in the data loader, 0.0 ms waiting for a processor");
  EXPECT_EQ(describe(Evidence{}), "");
}

}  // namespace
}  // namespace straggler
