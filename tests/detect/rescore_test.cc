#include "backend/detect/rescore.h"

#include <gtest/gtest.h>

#include "backend/detect/option_table.h"
#include "tests/fakes/ranks.h"

namespace straggler {
namespace {

// Rank 2 of 4 is `lateMs` late from step 100 on.
SyntheticJob jobWith(double lateMs) {
  SyntheticJob job;
  job.selfMs = [lateMs](int rank, std::int64_t step) {
    return 25 + 0.1 * noise(rank, step) + (rank == 2 && step >= 100 ? lateMs : 0);
  };
  return job;
}

Rescore fed(const SyntheticJob& job, Rescore::Options options = {}) {
  Rescore rescore(job.members(), options);
  for (const auto& frame : job.frames()) {
    rescore.apply(frame);
  }
  rescore.finish();
  return rescore;
}

TEST(Rescore, withTheOptionsOfTheJobItTellsWhatTheJobTold) {
  const SyntheticJob job = jobWith(8);
  JobModel live(job.members(), 10);
  std::vector<Verdict> told;
  for (const auto& frame : job.frames()) {
    live.apply(frame);
    for (const auto& event : live.takeEvents()) {
      told.push_back(event);
    }
  }
  const Rescore again = fed(job);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(again.events(), told);
  EXPECT_EQ(again.model().verdict(), live.verdict());
  EXPECT_EQ(again.model().windowsCompared(), 30U);
}

TEST(Rescore, otherGatesNameWhatTheJobDidNot) {
  const SyntheticJob job = jobWith(0.6);  // 2.3 % of a step of 26 ms
  EXPECT_EQ(fed(job).model().verdict().kind, VerdictKind::kNone);
  Rescore::Options options;
  setField(detectorFields(), options.detector, "relative_gate", "0.01");
  setField(detectorFields(), options.detector, "absolute_gate_ms", "0.2");
  const Rescore finer = fed(job, options);
  EXPECT_EQ(finer.model().verdict().kind, VerdictKind::kStraggler);
  EXPECT_EQ(finer.model().verdict().ranks, std::vector<int>{2});
}

TEST(Rescore, windowsOfAnotherLengthNameTheSameRank) {
  const SyntheticJob job = jobWith(8);
  for (const int steps : {5, 20, 25}) {
    const Rescore again = fed(job, {.recordedSteps = 10, .steps = steps, .detector = {}});
    EXPECT_EQ(again.model().verdict().ranks, std::vector<int>{2}) << steps;
    const std::uint64_t all = static_cast<std::uint64_t>(300 / steps);
    EXPECT_EQ(again.model().windowsCompared(), steps == 5 ? all - 1 : all) << steps << ": five steps are set-up";
    EXPECT_EQ(again.leftOut(), 0U);
  }
}

TEST(Rescore, whatIsLeftOfTheLastWindowsIsJudgedToo) {
  SyntheticJob job = jobWith(8);
  job.steps = 290;
  EXPECT_EQ(fed(job, {.recordedSteps = 10, .steps = 20, .detector = {}}).model().windowsCompared(), 15U);
}

TEST(Rescore, windowsAfterWhichItAbstainedAreCounted) {
  EXPECT_EQ(fed(jobWith(0)).model().windowsAbstained(), 2U) << "three are needed";
  Rescore silent({0, 1, 2, 3}, {});
  const SyntheticJob job = jobWith(0);
  for (const auto& frame : job.frames()) {
    if (frame.rank != 3) {
      silent.apply(frame);
    }
  }
  EXPECT_EQ(silent.model().windowsCompared(), 19U) << "of 30; ten are waited for";
  EXPECT_EQ(silent.model().windowsAbstained(), 19U);
}

TEST(Rescore, strangersAreCountedAsInAJob) {
  Rescore rescore({0, 1}, {.recordedSteps = 10, .steps = 20, .detector = {}});
  rescore.apply({7, {StepWindow{}}});
  EXPECT_EQ(rescore.model().strangers(), 1U);
}

TEST(Rescore, everyOptionHasTheDefaultThatItShows) {
  DetectorOptions again;
  const DetectorOptions defaults;
  for (const auto& row : fieldRows(detectorFields(), defaults)) {
    setField(detectorFields(), again, row.name, row.value);
  }
  EXPECT_EQ(again.falseAlarmWindows, 1e5);
  EXPECT_EQ(again.relativeGate, 0.03);
  EXPECT_EQ(again.rule, Rule::kSelfTime);
}

}  // namespace
}  // namespace straggler
