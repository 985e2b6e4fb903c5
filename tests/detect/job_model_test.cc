#include "backend/detect/job_model.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"
#include "tests/fakes/ranks.h"

namespace straggler {
namespace {

// Each rank's sample of `count` operations; rank r arrives r * `apartMs` after rank 0.
std::vector<Frame> arrivals(const SyntheticJob& job, std::uint64_t first, std::uint64_t count, double apartMs,
                            OpKind kind = OpKind::kAllReduce) {
  std::vector<Frame> frames;
  for (int rank = 0; rank < job.ranks; ++rank) {
    ArrivalSamples samples{1, {}};
    for (std::uint64_t sequence = first; sequence < first + count; ++sequence) {
      const double begin = 10 * static_cast<double>(sequence);
      samples.operations.push_back({{job.group().id(), sequence, kind}, at(begin + rank * apartMs), at(begin + 9)});
    }
    frames.push_back({rank, {samples}});
  }
  return frames;
}

JobModel modelOf(const SyntheticJob& job, const std::vector<Frame>& frames) {
  JobModel model(job.members(), static_cast<int>(job.window));
  for (int rank = 0; rank < job.ranks; ++rank) {
    model.apply(job.hello(rank));
  }
  for (const auto& frame : frames) {
    model.apply(frame);
  }
  return model;
}

const KindModel& kindOf(const JobModel& model, OpKind kind) { return model.kinds().at(static_cast<std::size_t>(kind)); }

TEST(JobModel, rankThatTellsNothingIsMissingAndNobodyIsComparedWithIt) {
  const SyntheticJob job;
  JobModel model(job.members(), 10);
  for (const auto& frame : job.frames()) {
    if (frame.rank != 2) {
      model.apply(frame);
    }
  }
  EXPECT_EQ(model.ranksHeard(), 3U);
  EXPECT_EQ(model.ranksFinal(), 3U);
  EXPECT_EQ(model.stepsCompared(), 0U);
  EXPECT_EQ(model.verdict().kind, VerdictKind::kAbstain);
  EXPECT_EQ(model.ranks()[2].selfMs.mean(), std::nullopt) << "no number is made up";
  EXPECT_EQ(model.ranks()[1].selfMs.count(), 295U) << "what the others told is kept";
}

TEST(JobModel, rankThatFallsSilentNamesNobody) {
  const SyntheticJob job;
  JobModel model(job.members(), 10);
  for (const auto& frame : job.frames()) {
    const auto* window = std::get_if<StepWindow>(&frame.messages.front());
    if (frame.rank != 2 || window == nullptr || window->firstStep < 150) {
      model.apply(frame);
    }
  }
  EXPECT_EQ(model.stepsCompared(), 145U);
  EXPECT_EQ(model.verdict().kind, VerdictKind::kAbstain);
  EXPECT_TRUE(model.verdict().ranks.empty());
  EXPECT_NE(model.verdict().reason.find("nothing was heard of rank 2"), std::string::npos) << model.verdict().reason;
  EXPECT_GT(model.windowsIncomplete(), 0U);
}

TEST(JobModel, strangersAreIgnoredAndCounted) {
  const SyntheticJob job;
  JobModel model = modelOf(job, {});
  model.apply({99, {RankHello{"intruder", 1, ""}, RankCounters{1, 1, 1, 1, true}}});
  model.apply({-1, {}});
  EXPECT_EQ(model.strangers(), 2U);
  EXPECT_EQ(model.ranksHeard(), 4U);
  EXPECT_EQ(model.ranksFinal(), 0U);
}

TEST(JobModel, ranksOfASessionNeedNotBeginAtZero) {
  JobModel model({3, 8}, 10);
  model.apply({8, {RankHello{"h", 1, "c"}}});
  EXPECT_EQ(model.ranksHeard(), 1U);
  EXPECT_TRUE(model.ranks()[1].hello);
}

TEST(JobModel, latenessAndSkewComeFromTheArrivals) {
  const SyntheticJob job;
  const JobModel model = modelOf(job, arrivals(job, 10, 50, 2));
  EXPECT_EQ(kindOf(model, OpKind::kAllReduce).skewMs.count(), 50U);
  EXPECT_NEAR(*kindOf(model, OpKind::kAllReduce).skewMs.quantile(0.5), 6, 1e-6);
  EXPECT_NEAR(*kindOf(model, OpKind::kAllReduce).boundMs.max(), 0.001, 1e-6);
  EXPECT_NEAR(*model.ranks()[2].latenessMs.quantile(0.5), 4, 1e-6);
  EXPECT_EQ(model.ranks()[3].timesLast, 50U);
  EXPECT_EQ(model.ranks()[0].timesLast, 0U);
}

TEST(JobModel, kindsAreKeptApart) {
  const SyntheticJob job;
  JobModel model = modelOf(job, arrivals(job, 10, 5, 2));
  for (const auto& frame : arrivals(job, 100, 3, 1, OpKind::kBroadcast)) {
    model.apply(frame);
  }
  EXPECT_EQ(kindOf(model, OpKind::kAllReduce).skewMs.count(), 5U);
  EXPECT_EQ(kindOf(model, OpKind::kBroadcast).skewMs.count(), 3U);
}

TEST(JobModel, firstOperationsOfAGroupAreSetUp) {
  const SyntheticJob job;
  const JobModel model = modelOf(job, arrivals(job, 0, 15, 2));
  EXPECT_EQ(kindOf(model, OpKind::kAllReduce).skewMs.count(), 15U - JobModel::kWarmUpOperations);
}

TEST(JobModel, operationThatOneRankDidNotTellOfIsNotCompared) {
  const SyntheticJob job;
  auto frames = arrivals(job, 10, 5, 2);
  frames.pop_back();
  EXPECT_EQ(kindOf(modelOf(job, frames), OpKind::kAllReduce).skewMs.count(), 0U);
}

TEST(JobModel, ranksOnClocksThatNothingRelatesAreNotCompared) {
  const SyntheticJob job{.ranks = 2};
  JobModel model(job.members(), 10);
  model.apply(job.hello(0));
  model.apply({1, {RankHello{"host-b", 1, "clock-b"}}});
  for (const auto& frame : arrivals(job, 10, 5, 2, OpKind::kBroadcast)) {
    model.apply(frame);
  }
  EXPECT_EQ(model.clocks().count(), 2U);
  EXPECT_EQ(kindOf(model, OpKind::kBroadcast).skewMs.count(), 0U) << "a broadcast bounds no clock";
}

// The same two ranks, the second on a clock of its own that reads the same.
JobModel twoClocks(const SyntheticJob& job, const std::vector<Message>& first = {}) {
  JobModel model(job.members(), 10);
  model.apply(job.hello(0));
  model.apply({1, {RankHello{"host-b", 1, "clock-b"}}});
  model.apply({1, first});
  for (const auto& frame : arrivals(job, 10, 5, 2)) {
    model.apply(frame);
  }
  return model;
}

TEST(JobModel, operationsThatCompleteTogetherRelateTheClocks) {
  const SyntheticJob job{.ranks = 2};
  const JobModel model = twoClocks(job);
  EXPECT_EQ(kindOf(model, OpKind::kAllReduce).skewMs.count(), 5U);
  EXPECT_GE(*kindOf(model, OpKind::kAllReduce).boundMs.max(), 7) << "rank 0 is never last";
  ASSERT_EQ(model.clocks().relations().size(), 1U);
  EXPECT_TRUE(model.clocks().relations()[0].offset);
}

TEST(JobModel, whoWasLastIsNotCountedWhereTheBoundsLeaveItOpen) {
  const SyntheticJob job{.ranks = 2};
  const JobModel open = twoClocks(job);
  EXPECT_EQ(open.ranks()[1].latenessMs.count(), 5U);
  EXPECT_EQ(open.ranks()[1].lastCertain, 0U);
  EXPECT_EQ(open.ranks()[1].timesLast, 0U);
  const JobModel certain = modelOf(job, arrivals(job, 10, 5, 2));
  EXPECT_EQ(certain.ranks()[1].lastCertain, 5U);
  EXPECT_EQ(certain.ranks()[1].timesLast, 5U);
}

TEST(JobModel, whatARankSawOfTheRootsClockRelatesTheirClocks) {
  const SyntheticJob job{.ranks = 2};
  JobModel model(job.members(), 10);
  model.apply(job.hello(0));
  model.apply({1, {RankHello{"host-b", 1, "clock-b"}, ClockReading{at(10'001), at(10'002), at(1), at(2)}}});
  const auto relations = model.clocks().relations();
  ASSERT_TRUE(relations[0].offset);
  EXPECT_EQ(relations[0].offset->lower, ms(10'001 - 2));
  EXPECT_EQ(relations[0].offset->upper, ms(10'002 - 1) + ClockOffset::drifted(ms(1)));
}

TEST(JobModel, operationsThatAProxyMayFillRelateNoClocks) {
  const SyntheticJob job{.ranks = 2};
  MitigationSummary summary;
  EXPECT_TRUE(twoClocks(job, {summary}).clocks().relations()[0].offset) << "on, but for no bucket";
  summary.armed = true;
  EXPECT_FALSE(twoClocks(job, {summary}).clocks().relations()[0].offset);
}

TEST(JobModel, timeLostIsWhatTheStepsWouldHaveBeenShorterWithoutTheRank) {
  SyntheticJob job;
  job.selfMs = [](int rank, std::int64_t) { return rank == 2 ? 33.0 : rank == 1 ? 28.0 : 25.0; };
  const JobModel model = modelOf(job, job.frames());
  EXPECT_NEAR(model.ranks()[2].lostMs, 5.0 * 295, 0.01) << "then rank 1 would be the slowest";
  EXPECT_EQ(model.ranks()[1].lostMs, 0);
  EXPECT_NEAR(model.comparedMs(), 34.0 * 295, 0.5);
}

TEST(JobModel, laterCountersReplaceTheEarlier) {
  const SyntheticJob job;
  JobModel model = modelOf(job, {});
  model.apply({1, {RankCounters{10, 1, 0, 0, false}}});
  model.apply({1, {RankCounters{20, 2, 0, 0, true}}});
  EXPECT_EQ(model.ranks()[1].counters, (RankCounters{20, 2, 0, 0, true}));
}

TEST(JobModel, mitigationIsTheLastThatARankTold) {
  JobModel model({0, 1}, 10);
  MitigationSummary summary{false, "carry", "buckets are not known yet"};
  model.apply({1, {summary}});
  summary.armed = true;
  summary.late = 7;
  model.apply({1, {summary}});
  EXPECT_EQ(model.ranks()[1].mitigation, summary);
  EXPECT_EQ(model.ranks()[0].mitigation, std::nullopt) << "what nobody told is not known";
}

TEST(JobModel, frameThatComesTwiceChangesNothingThatIsCompared) {
  const SyntheticJob job;
  JobModel model = modelOf(job, {});
  for (const auto& frame : job.frames()) {
    model.apply(frame);
    model.apply(frame);
  }
  EXPECT_EQ(model.stepsCompared(), 295U);
}

TEST(JobModel, extremeValuesThatTheCodecAllowsDoNotOverflow) {
  const SyntheticJob job{.ranks = 3};
  JobModel model(job.members(), 10);
  const std::int64_t largest = std::int64_t{1} << 60;
  for (int rank = 0; rank < 3; ++rank) {
    model.apply({rank, {RankHello{"h", 1, "clock " + std::to_string(rank)}}});
  }
  model.apply({0, {job.group()}});
  const auto tell = [&](int rank, std::uint64_t sequence, std::int64_t arrival, std::int64_t completed) {
    model.apply({rank,
                 {ArrivalSamples{1,
                                 {{{job.group().id(), sequence, OpKind::kAllReduce},
                                   fromNanoseconds(arrival),
                                   fromNanoseconds(completed)}}}}});
  };
  for (const std::uint64_t sequence : {10U, 11U, 12U}) {
    const std::int64_t sign = sequence % 2 == 0 ? 1 : -1;
    tell(0, sequence, -sign * largest, sign * largest);
    tell(1, sequence, sign * largest, -sign * largest);
    tell(2, sequence, -sign * largest, sign * largest);
  }
  model.apply({0, {StepWindow{std::int64_t{1} << 48, UINT32_MAX, StepsFoundBy::kTime, {UINT32_MAX}, UINT64_MAX}}});
  (void)model.verdict();
}

}  // namespace
}  // namespace straggler
