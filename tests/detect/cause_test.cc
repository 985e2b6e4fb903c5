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

TEST(Cause, descriptionNamesOnlyWhatWasMeasured) {
  EXPECT_EQ(describe(evidence(7.94, std::nullopt, 0.01)), "7.9 ms in the data loader, 0.0 ms waiting for a processor");
  EXPECT_EQ(describe(Evidence{}), "");
}

}  // namespace
}  // namespace straggler
