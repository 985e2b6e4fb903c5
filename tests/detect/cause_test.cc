#include "backend/detect/cause.h"

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

TEST(Cause, isWhatMakesUpMostOfTheExcess) {
  EXPECT_EQ(causeOf(evidence(7.9, 0.1, 0.0), 8.1), "host_input");
  EXPECT_EQ(causeOf(evidence(0.1, 0.2, 7.5), 8.1), "host_launch");
  EXPECT_EQ(causeOf(evidence(0.0, 8.0, 0.1), 8.1), "host_compute");
}

TEST(Cause, isNotAttributedWhereItExplainsLessThanFourFifths) {
  EXPECT_EQ(causeOf(evidence(4.0, 0.1, 0.0), 8.0), "not_attributed") << "half in the data loader, half elsewhere";
  EXPECT_EQ(causeOf(evidence(6.3, 0.0, 0.0), 8.0), "not_attributed");
  EXPECT_EQ(causeOf(evidence(6.5, 0.0, 0.0), 8.0), "host_input");
}

TEST(Cause, isNotAttributedWhereNothingWasMeasured) {
  EXPECT_EQ(causeOf(evidence(std::nullopt, std::nullopt, std::nullopt), 8), "not_attributed");
  EXPECT_EQ(causeOf(evidence(0.0, 0.0, 0.0), 0), "not_attributed") << "no excess, no cause";
}

TEST(Cause, loaderThatComputesIsStillTheInput) { EXPECT_EQ(causeOf(evidence(8.0, 8.0, 0.0), 8.1), "host_input"); }

// ---- What the operating system counted ----

void set(Evidence& evidence, OsCounter counter, double rank, double peers) {
  evidence.os.set(counter, rank);
  evidence.osPeers.set(counter, peers);
}

TEST(Cause, threadThatIsBlockedByADiskOutsideALoaderWaitsForItsInput) {
  Evidence made = evidence(std::nullopt, 0.1, 0.0);
  set(made, OsCounter::kBlockIo, 6.6, 0.1);
  EXPECT_EQ(causeOf(made, 8.0), "host_input") << "81 %";
  EXPECT_EQ(causeOf(made, 8.2), "not_attributed") << "79 %";
  set(made, OsCounter::kMemoryFullPressure, 3, 0);
  EXPECT_EQ(causeOf(made, 8.0), "not_attributed") << "it reads back what was in memory";
}

TEST(Cause, slowerDeviceIsNoneForHowMuchItExplainsIsNotMeasured) {
  Evidence made = evidence(0.0, 0.1, 0.0);
  set(made, OsCounter::kSmClock, 1215, 1980);
  set(made, OsCounter::kDeviceSlowedByHeat, 1, 0);
  EXPECT_EQ(causeOf(made, 7), "not_attributed");
}

TEST(Cause, halfInTheLoaderAndHalfBlockedElsewhereIsNeitherAndTheyAreNotAddedUp) {
  Evidence made = evidence(4.0, 0.1, 0.0);
  set(made, OsCounter::kBlockIo, 4.1, 0.1);
  EXPECT_EQ(causeOf(made, 8.0), "not_attributed");
}

TEST(Cause, blockIoWithoutPeersOrOfAllRanksAlikeExplainsNothing) {
  Evidence made = evidence(std::nullopt, 0.1, 0.0);
  made.os.set(OsCounter::kBlockIo, 8);
  EXPECT_EQ(causeOf(made, 8.0), "not_attributed");
  made.osPeers.set(OsCounter::kBlockIo, 7);
  EXPECT_EQ(causeOf(made, 8.0), "not_attributed");
}

TEST(Cause, quotaCountsWhereTheWaitForAProcessorIsNotMeasured) {
  Evidence made = evidence(0.0, 0.1, std::nullopt);
  set(made, OsCounter::kQuotaThrottled, 7.5, 0);
  EXPECT_EQ(causeOf(made, 8.0), "host_launch");
  made.runDelayMs = 0.2;
  EXPECT_EQ(causeOf(made, 8.0), "not_attributed") << "it was other threads of the group that it held up";
}

}  // namespace
}  // namespace straggler
