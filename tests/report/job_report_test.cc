#include "backend/report/job_report.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "backend/report/json_records.h"
#include "tests/fakes/operations.h"
#include "tests/fakes/ranks.h"

namespace straggler {
namespace {

JobReport reportOn(const SyntheticJob& job, const std::vector<Frame>& frames) {
  JobModel model(job.members(), static_cast<int>(job.window));
  for (const auto& frame : frames) {
    model.apply(frame);
  }
  return jobReport(model);
}

bool hasNote(const JobReport& report, const std::string& part) {
  return std::any_of(report.notes.begin(), report.notes.end(),
                     [&](const auto& note) { return note.find(part) != std::string::npos; });
}

// A job with a culprit, every rank's arrivals told with its windows.
std::vector<Frame> wholeJob(SyntheticJob& job) {
  job.selfMs = [](int rank, std::int64_t step) { return 25 + 0.5 * noise(rank, step) + (rank == 2 ? 8 : 0); };
  auto frames = job.frames();
  for (auto& frame : frames) {
    if (const auto* window = std::get_if<StepWindow>(&frame.messages.front())) {
      const auto sequence = static_cast<std::uint64_t>(window->firstStep);
      const double arrivalMs = 34.0 * static_cast<double>(sequence) + job.selfMs(frame.rank, window->firstStep);
      frame.messages.emplace_back(
          ArrivalSamples{1, {{{job.group().id(), sequence, OpKind::kAllReduce}, at(arrivalMs), at(arrivalMs + 9)}}});
    }
  }
  return frames;
}

TEST(JobReport, framesOfStrangersAreSaid) {
  SyntheticJob job;
  auto frames = wholeJob(job);
  frames.push_back({77, {RankHello{"elsewhere", 1, ""}}});
  const JobReport report = reportOn(job, frames);
  EXPECT_EQ(report.notes, std::vector<std::string>{"1 frames came from ranks that are no members and were ignored"});
}

TEST(JobReport, rowsOfACompleteJob) {
  SyntheticJob job;
  const JobReport report = reportOn(job, wholeJob(job));
  EXPECT_EQ(report.worldSize, 4U);
  EXPECT_EQ(report.ranksReported, 4U);
  EXPECT_EQ(report.clocks, 1U);
  EXPECT_EQ(report.stepsCompared, 295U);
  EXPECT_EQ(report.collectives, 4 * 300U);
  EXPECT_EQ(report.verdict.ranks, std::vector<int>{2});
  EXPECT_TRUE(report.notes.empty());
  const RankRow& row = *report.row(2);
  EXPECT_EQ(row.host, "host-a");
  EXPECT_EQ(row.processId, 1002);
  EXPECT_EQ(row.steps, 295U);
  EXPECT_NEAR(*row.selfMs, 33, 0.2);
  EXPECT_DOUBLE_EQ(*row.waitMs, *row.stepMs - *row.selfMs);
  EXPECT_NEAR(*row.latenessP50Ms, 8, 1);
  EXPECT_EQ(row.timesLast, row.operationsCompared);
  EXPECT_NEAR(*row.timeLostShare, 7.4 / 34, 0.03);
  EXPECT_NEAR(*report.row(0)->timeLostShare, 0, 0.001);
  ASSERT_EQ(report.skew.size(), 1U);
  EXPECT_EQ(report.skew.front().kind, OpKind::kAllReduce);
  EXPECT_EQ(report.skew.front().operations, 29U) << "one a window, without the set-up";
  EXPECT_EQ(report.row(9), nullptr);
}

TEST(JobReport, clockOfAnotherHostHasARowAndItsLeapsANote) {
  SyntheticJob job;
  auto frames = wholeJob(job);
  for (auto& frame : frames) {
    for (auto& message : frame.messages) {
      if (auto* hello = std::get_if<RankHello>(&message); hello != nullptr && frame.rank == 3) {
        hello->clockDomain = "host-b";
      }
    }
  }
  const JobReport report = reportOn(job, frames);
  EXPECT_EQ(report.clocks, 2U);
  ASSERT_EQ(report.clockRows.size(), 1U);
  const ClockRow& row = report.clockRows.front();
  EXPECT_EQ(row.ranks, std::vector<int>{3});
  ASSERT_TRUE(row.offsetMs && row.driftPpm);
  EXPECT_NEAR(*row.offsetMs, 0, *row.offsetBoundMs);
  EXPECT_LT(*row.offsetBoundMs, 20);
  EXPECT_NEAR(*row.driftPpm, 0, *row.driftBoundPpm);
  EXPECT_GT(*row.driftSpanMs, 2000);
  EXPECT_EQ(row.leaps, 0U);
  EXPECT_TRUE(report.notes.empty());
}

TEST(JobReport, leapOfAClockIsSaid) {
  const SyntheticJob job{.ranks = 2};
  const auto arrival = [&job](std::uint64_t sequence, double ms, double leapt) {
    return ArrivalSamples{1, {{{job.group().id(), sequence, OpKind::kAllReduce}, at(ms + leapt), at(ms + leapt + 1)}}};
  };
  const JobReport report = reportOn(job, {job.hello(0),
                                          {1, {RankHello{"host-b", 1, "clock-b"}}},
                                          {0, {arrival(1, 100, 0), arrival(2, 200, 0)}},
                                          {1, {arrival(1, 100, 0), arrival(2, 200, 5000)}}});
  ASSERT_EQ(report.clockRows.size(), 1U);
  EXPECT_EQ(report.clockRows.front().leaps, 1U);
  EXPECT_FALSE(report.clockRows.front().offsetMs);
  EXPECT_TRUE(hasNote(report, "clocks leapt 1 time: arrivals on them were not compared until they were known again"));
}

TEST(JobReport, sameFramesInAnotherOrderGiveTheSameReport) {
  SyntheticJob job;
  const auto frames = wholeJob(job);
  const std::string expected = toJson(reportOn(job, frames));
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    // Each rank's own frames keep their order, and no rank is so far behind that it would count as missing; how the ranks'
    // frames mix is chance.
    std::map<int, std::vector<Frame>> left;
    for (const auto& frame : frames) {
      left[frame.rank].insert(left[frame.rank].begin(), frame);
    }
    std::vector<Frame> mixed;
    while (mixed.size() < frames.size()) {
      std::size_t most = 0;
      for (const auto& [rank, own] : left) {
        most = std::max(most, own.size());
      }
      auto& own = left[std::uniform_int_distribution<int>(0, job.ranks - 1)(random)];
      if (!own.empty() && own.size() + WindowTable::kPatience > most) {
        mixed.push_back(own.back());
        own.pop_back();
      }
    }
    ASSERT_EQ(toJson(reportOn(job, mixed)), expected) << "round " << round;
  }
}

TEST(JobReport, rankThatToldNothingHasNoNumbers) {
  const SyntheticJob job;
  auto frames = job.frames();
  std::erase_if(frames, [](const auto& frame) { return frame.rank >= 2; });
  const JobReport report = reportOn(job, frames);
  const RankRow& row = *report.row(3);
  EXPECT_FALSE(row.heard);
  EXPECT_EQ(row.stepMs, std::nullopt);
  EXPECT_EQ(row.selfMs, std::nullopt);
  EXPECT_EQ(row.waitMs, std::nullopt);
  EXPECT_EQ(row.latenessP50Ms, std::nullopt);
  EXPECT_EQ(row.timeLostShare, std::nullopt);
  EXPECT_EQ(report.stepMs, std::nullopt);
  EXPECT_TRUE(hasNote(report, "nothing was heard of rank 2, 3: it is missing, and nobody is compared with it"));
  EXPECT_EQ(report.verdict.kind, VerdictKind::kAbstain);
}

TEST(JobReport, rankWithoutAnEndIsNoted) {
  const SyntheticJob job;
  auto frames = job.frames();
  frames.pop_back();
  EXPECT_TRUE(hasNote(reportOn(job, frames), "rank 3 has not told its end"));
}

TEST(JobReport, whateverWasLostIsNotedWithItsCount) {
  const SyntheticJob job;
  auto frames = job.frames();
  frames.push_back({1, {RankCounters{300, 5, 7, 11, true}}});
  frames.push_back({2, {RankCounters{300, 1, 0, 0, true}}});
  const JobReport report = reportOn(job, frames);
  EXPECT_EQ(report.recordsDropped, 6U);
  EXPECT_EQ(report.row(1)->recordsDropped, 5U);
  EXPECT_TRUE(hasNote(report, "6 records were dropped"));
  EXPECT_TRUE(hasNote(report, "7 summaries could not be sent"));
  EXPECT_TRUE(hasNote(report, "11 operations were captured into device graphs"));
}

TEST(JobReport, mitigationIsOfTheRanksThatToldOfIt) {
  const SyntheticJob job;
  auto frames = job.frames();
  EXPECT_TRUE(reportOn(job, frames).mitigation.empty()) << "it is off";
  frames.push_back({1, {MitigationSummary{true, "carry", "group \x1b", 41, 40, 37, 1, 2, 74, 5, 3'250'000}}});
  frames.push_back({2, {MitigationSummary{false, "carry", "alone"}}});
  const JobReport report = reportOn(job, frames);
  ASSERT_EQ(report.mitigation.size(), 2U);
  const MitigationRow& row = report.mitigation.front();
  EXPECT_EQ(row.rank, 1);
  EXPECT_EQ(row.text, "group ?") << "it came over the network";
  EXPECT_EQ(row.late, 40U);
  EXPECT_EQ(row.stalenessMean, 2.0);
  EXPECT_EQ(row.stalenessMax, 5U);
  EXPECT_DOUBLE_EQ(row.savedMs, 3'250);
  EXPECT_EQ(report.mitigation.back().stalenessMean, std::nullopt) << "of nothing applied there is no staleness";
  EXPECT_EQ(report.mitigation.back().stalenessMax, std::nullopt);
}

TEST(JobReport, gradientsThatAreOwedAtTheEndAreNoted) {
  const SyntheticJob job;
  auto frames = job.frames();
  const auto owing = [](std::uint64_t pending) {
    MitigationSummary summary{true, "carry", "group 0"};
    summary.pending = pending;
    return summary;
  };
  frames.insert(frames.end() - 1, {3, {owing(2)}});
  EXPECT_TRUE(
      hasNote(reportOn(job, frames),
              "rank 3 ends with 2 gradients that were not applied; torch_straggler.flush() before the last step "
              "applies them"));
  frames.push_back({1, {owing(1)}});
  EXPECT_TRUE(hasNote(reportOn(job, frames), "rank 1, 3 end with 3 gradients that were not applied; "));
  frames.push_back({3, {owing(0)}});
  EXPECT_TRUE(hasNote(reportOn(job, frames), "rank 1 ends with 1 gradient that was not applied; "));
  frames.push_back({1, {owing(0)}});
  EXPECT_FALSE(hasNote(reportOn(job, frames), "not applied"));
}

TEST(JobReport, aRankWhoseGradientsAreDroppedMoreThanTheOthersIsAnAlarm) {
  const SyntheticJob job;
  auto frames = job.frames();
  const auto dropping = [](const char* mode, std::uint64_t dropped) {
    MitigationSummary summary{true, mode, "for 1 bucket"};
    summary.dropped = dropped;
    return summary;
  };
  frames.push_back({3, {dropping("drop", 84)}});
  frames.push_back({1, {dropping("drop", 6)}});
  EXPECT_TRUE(
      hasNote(reportOn(job, frames),
              "ALARM: gradients of rank 3 were dropped 84 times, those of the others 2.0 times each in the mean"));
  EXPECT_FALSE(hasNote(reportOn(job, frames), "ALARM: gradients of rank 1"));
  frames.push_back({1, {dropping("drop", 80)}});
  frames.push_back({2, {dropping("drop", 80)}});
  EXPECT_FALSE(hasNote(reportOn(job, frames), "ALARM")) << "it hits all alike";
  frames.push_back({1, {dropping("carry", 0)}});
  frames.push_back({2, {dropping("carry", 0)}});
  frames.push_back({3, {dropping("carry", 84)}});
  EXPECT_FALSE(hasNote(reportOn(job, frames), "ALARM")) << "in carry only what is not finite is dropped";
}

TEST(JobReport, whatARankOwesWhileItRunsIsNoNote) {
  const SyntheticJob job;
  auto frames = job.frames();
  frames.pop_back();
  MitigationSummary summary{true, "carry", "group 0"};
  summary.pending = 2;
  frames.push_back({3, {summary}});
  EXPECT_FALSE(hasNote(reportOn(job, frames), "not applied"));
}

TEST(JobReport, thinningIsNoted) {
  const SyntheticJob job;
  auto frames = job.frames();
  frames.push_back({1, {ArrivalSamples{8, {}}, StepWindow{400, 2, StepsFoundBy::kGraphTask, {1}, 1}}});
  EXPECT_TRUE(hasNote(reportOn(job, frames), "arrivals are of 1 in 8 collectives, step times of 1 in 2 windows"));
}

TEST(JobReport, windowsThatCameLateOrNotAtAllAreNoted) {
  JobReport report;
  EXPECT_TRUE(windowNotes(report).empty());
  report.windowsCompared = 40;
  report.windowsIncomplete = 3;
  report.windowsLate = 2;
  EXPECT_EQ(windowNotes(report),
            (std::vector<std::string>{
                "3 of 40 windows are incomplete: not every rank told of them, and who did not is not compared",
                "2 windows of ranks came in after theirs had been judged"}));
}

TEST(JobReport, verdictStaysTheSameWhileItsFiguresMoveOn) {
  Verdict verdict;
  verdict.ranks = {2};
  Verdict later = verdict;
  later.excessMs = 3;
  later.step = 90;
  EXPECT_TRUE(isSameVerdict(verdict, later));
  later.ranks = {3};
  EXPECT_FALSE(isSameVerdict(verdict, later));
}

TEST(JobReport, widestGroupComesFirst) {
  const SyntheticJob job;
  JobModel model(job.members(), 10);
  model.apply({0,
               {GroupInfo{"b", "", "gloo", {0, 1}}, GroupInfo{"world", "", "gloo", {0, 1, 2, 3}},
                GroupInfo{"a", "", "gloo", {0, 1}}}});
  const JobReport report = jobReport(model);
  ASSERT_EQ(report.groups.size(), 3U);
  EXPECT_EQ(report.groups[0].name, "world");
  EXPECT_EQ(report.groups[1].name, "a");
  EXPECT_EQ(report.groups[2].name, "b");
}

TEST(JobReport, rankAloneLosesNoTimeToItself) {
  const SyntheticJob job{.ranks = 1};
  const JobReport report = reportOn(job, job.frames());
  EXPECT_EQ(report.row(0)->timeLostShare, std::nullopt);
  EXPECT_TRUE(report.row(0)->selfMs);
}

}  // namespace
}  // namespace straggler
