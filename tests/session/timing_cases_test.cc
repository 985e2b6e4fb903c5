// From operations to what is reported: what made other tools that time collectives go wrong. tests/CASES.md has all such
// cases, most of which are tested where their part is.
#include <gtest/gtest.h>

#include "backend/report/job_report.h"
#include "tests/fakes/simulated_rank.h"

namespace straggler {
namespace {

// Gives what a rank has sent since the last call to the model.
class Feed {
 public:
  explicit Feed(int rank) : rank_({.rank = rank}) {}
  void steps(int count, JobModel& model) {
    rank_.steps(count);
    for (; fed_ < rank_.exchange->sent.size(); ++fed_) {
      model.apply(rank_.exchange->sent[fed_]);
    }
  }

 private:
  SimulatedRank rank_;
  std::size_t fed_ = 0;
};

TEST(TimingCases, reportsOfTenIntervalsUnderConstantLoadAgree) {
  JobModel model({0, 1}, 10);
  Feed first(0);
  Feed second(1);
  for (int interval = 0; interval < 10; ++interval) {
    first.steps(40, model);
    second.steps(40, model);
    const RankRow row = *jobReport(model).row(1);
    EXPECT_NEAR(*row.stepMs, 30, 1.5) << "in interval " << interval;
    EXPECT_NEAR(*row.selfMs, 24, 1.2) << "four of five parts of a step are before the last bucket";
    EXPECT_GT(row.steps, 40U * static_cast<unsigned>(interval));
  }
}

// The samples of one rank, whose ring of four is not read during ten operations.
std::vector<ArrivalSample> throughSmallRing(int rank, int operations, int unreadFrom) {
  Recorder recorder(4);
  const GroupId group = groupId("world");
  recorder.addGroup(group);
  std::vector<Operation> read;
  for (int i = 0; i < operations; ++i) {
    const Ticket ticket = recorder.enter(entered(OpKind::kAllReduce, 10 * i + 3 * rank, group));
    recorder.issued(ticket, at(10 * i + 3 * rank));
    recorder.completed(ticket, hostStamp(10 * i + 9), false);
    if (i < unreadFrom || i >= unreadFrom + 10) {
      recorder.drainAll(read);
    }
  }
  EXPECT_EQ(recorder.dropped(), 7U) << "ten were not read, four had room, and the next found it full";
  std::vector<ArrivalSample> samples;
  for (const auto& operation : read) {
    samples.push_back({operation.key, operation.arrival.time, operation.completed.time});
  }
  return samples;
}

TEST(TimingCases, operationsStayMatchedWhereRingsWereFullAtDifferentPoints) {
  constexpr int kOperations = 100;
  JobModel model({0, 1}, 10);
  model.apply({0, {RankHello{"h", 1, "c"}, GroupInfo{"world", "", "gloo", {0, 1}}}});
  model.apply({1, {RankHello{"h", 2, "c"}}});
  model.apply({0, {ArrivalSamples{1, throughSmallRing(0, kOperations, 30)}}});
  model.apply({1, {ArrivalSamples{1, throughSmallRing(1, kOperations, 60)}}});
  const JobReport report = jobReport(model);
  ASSERT_EQ(report.skew.size(), 1U);
  EXPECT_EQ(report.skew.front().operations, kOperations - JobModel::kWarmUpOperations - 2 * 7U);
  EXPECT_NEAR(report.skew.front().p50Ms, 3, 1e-6);
  EXPECT_NEAR(report.skew.front().maxMs, 3, 1e-6) << "never the next operation's arrival";
  EXPECT_EQ(report.row(1)->timesLast, report.skew.front().operations);
}

TEST(TimingCases, operationWithoutAnEndGivesAnArrivalAndNoDuration) {
  SimulatedRank rank;
  rank.steps(30, 30, 1);
  Operation open = entered(OpKind::kBroadcast, 0, groupId("world"));
  open.arrival = {rank.clock.now(), StampSource::kHost};
  rank.recorder->issued(rank.recorder->enter(open), rank.clock.now());
  rank.steps(30, 30, 1);
  rank.finish();
  std::size_t found = 0;
  for (const auto& samples : rank.exchange->messages<ArrivalSamples>()) {
    for (const auto& sample : samples.operations) {
      found += sample.key.kind == OpKind::kBroadcast ? 1 : 0;
      EXPECT_EQ(sample.completed.has_value(), sample.key.kind != OpKind::kBroadcast);
    }
  }
  EXPECT_EQ(found, 1U);
  for (const auto& window : rank.exchange->messages<StepWindow>()) {
    for (std::size_t i = window.firstStep == 0 ? 1 : 0; i < window.selfUs.size(); ++i) {
      EXPECT_EQ(window.selfUs[i], 15'000U) << "what never ended blocks nobody";
    }
  }
}

}  // namespace
}  // namespace straggler
