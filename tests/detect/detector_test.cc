// The decision, window by window. What whole jobs look like to it: job_verdict_test.cc.
#include "backend/detect/detector.h"

#include <functional>

#include <gtest/gtest.h>

namespace straggler {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A job of `ranks` ranks, windows of ten steps, own time 30 ms and step 38 ms, so the gate is at 1.14 ms.
class DetectorTest : public testing::Test {
 protected:
  static constexpr double kSelfMs = 30;

  void begin(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      input_.ranks.push_back(10 + rank);  // global ranks that are not positions
    }
    input_.arrivals.resize(static_cast<std::size_t>(ranks));
    row_.ranks.resize(static_cast<std::size_t>(ranks));
  }

  // One more window; `extraMs` by position, nothing for a rank that told nothing. Gives what is told.
  std::vector<Verdict> window(const std::vector<std::optional<double>>& extraMs) {
    row_.told = 0;
    for (std::size_t i = 0; i < extraMs.size(); ++i) {
      row_.ranks[i].reset();
      if (extraMs[i]) {
        row_.ranks[i] = RankWindow{std::vector<double>(10, kSelfMs + *extraMs[i]), 38};
        row_.ranks[i]->inputMs = inputShare_ * *extraMs[i];
        ++row_.told;
      }
    }
    input_.window = compare(row_);
    auto decision = decide(std::move(state_), input_, options_);
    state_ = std::move(decision.state);
    row_.firstStep += 10;
    return decision.events;
  }
  // `count` windows; gives all that is told.
  std::vector<Verdict> windows(int count, const std::vector<std::optional<double>>& extraMs) {
    std::vector<Verdict> all;
    for (int i = 0; i < count; ++i) {
      for (auto& event : window(extraMs)) {
        all.push_back(std::move(event));
      }
    }
    return all;
  }
  static std::vector<VerdictKind> kinds(const std::vector<Verdict>& events) {
    std::vector<VerdictKind> all;
    for (const auto& event : events) {
      all.push_back(event.kind);
    }
    return all;
  }

  using Kinds = std::vector<VerdictKind>;
  DetectorOptions options_;
  DetectorState state_;
  DetectorInput input_;
  WindowRow row_{10, {}, 0};
  double inputShare_ = 0;
};

TEST_F(DetectorTest, workedExampleOfThePolicy) {
  begin(4);
  EXPECT_TRUE(windows(10, {0, 0, 0, 0}).empty());
  EXPECT_TRUE(windows(2, {0, 0, 8.1, 0}).empty());
  const auto events = window({0, 0, 8.1, 0});
  ASSERT_EQ(events.size(), 1U);
  const Verdict& verdict = events.front();
  EXPECT_EQ(verdict.kind, VerdictKind::kStraggler);
  EXPECT_EQ(verdict.ranks, std::vector<int>{12});
  EXPECT_NEAR(*verdict.excessMs, 8.1, 1e-9);
  EXPECT_NEAR(*verdict.share, 0.213, 0.001);
  EXPECT_EQ(verdict.sinceStep, 110);
  EXPECT_EQ(verdict.step, 139);
  EXPECT_NEAR(*verdict.confidence, 1 - 1e-5, 1e-9);
  EXPECT_EQ(verdict.evidence.windows, 3U);
  EXPECT_TRUE(contains(verdict.reason,
                       "8.10 ms a step above the median of its peers, more than 1.14 ms (3.0 % of the "
                       "step) in 3 of 3 windows of steps"))
      << verdict.reason;
}

TEST_F(DetectorTest, whatLastsIsToldOnce) {
  begin(4);
  EXPECT_EQ(kinds(windows(100, {0, 0, 8, 0})), Kinds{VerdictKind::kStraggler});
  EXPECT_EQ(state_.verdict.kind, VerdictKind::kStraggler);
  EXPECT_EQ(state_.verdict.evidence.windows, 100U);
}

TEST_F(DetectorTest, twoRanksCanBeStragglersAtOnce) {
  begin(8);
  windows(5, {0, 0, 5, 0, 0, 9, 0, 0});
  EXPECT_EQ(state_.verdict.ranks, (std::vector<int>{15, 12})) << "worst first";
}

TEST_F(DetectorTest, afterOneOfTwoClearsTheOtherIsStillToldWhenItChanges) {
  begin(8);
  windows(20, {0, 0, 4, 0, 0, 9, 0, 0});
  EXPECT_EQ(kinds(windows(20, {0, 0, 4, 0, 0, 0, 0, 0})), Kinds{VerdictKind::kCleared});
  EXPECT_EQ(state_.verdict.ranks, std::vector<int>{12});
  const auto events = windows(30, {0, 0, 9, 0, 0, 0, 0, 0});
  ASSERT_EQ(kinds(events), Kinds{VerdictKind::kStraggler});
  EXPECT_EQ(events.front().ranks, std::vector<int>{12});
}

TEST_F(DetectorTest, stepsWithoutALengthHaveNoShare) {
  begin(2);
  row_.firstStep = 10;
  for (int i = 0; i < 5; ++i) {
    row_.ranks = {RankWindow{std::vector<double>(10, 30.0), 0}, RankWindow{std::vector<double>(10, 40.0), 0}};
    row_.told = 2;
    input_.window = compare(row_);
    state_ = decide(std::move(state_), input_, options_).state;
  }
  EXPECT_EQ(state_.verdict.ranks, std::vector<int>{11});
  EXPECT_EQ(state_.verdict.share, std::nullopt);
}

TEST_F(DetectorTest, excessThatGrowsIsToldAgainButNotEveryWindow) {
  begin(4);
  windows(20, {0, 0, 4, 0});
  const auto events = windows(40, {0, 0, 9, 0});
  EXPECT_EQ(kinds(events), Kinds{VerdictKind::kStraggler});
  EXPECT_NEAR(*events.front().excessMs, 9, 1e-9);
  EXPECT_EQ(events.front().sinceStep, 10);
}

TEST_F(DetectorTest, endOfTheDelayIsClearedWithinFiveWindowsAndSaysWhatItWas) {
  begin(4);
  windows(10, {0, 0, 8, 0});
  const auto events = windows(5, {0, 0, 0, 0});
  ASSERT_EQ(kinds(events), Kinds{VerdictKind::kCleared});
  EXPECT_EQ(events.front().ranks, std::vector<int>{12});
  EXPECT_NEAR(*events.front().excessMs, 8, 1e-9);
  EXPECT_EQ(events.front().sinceStep, 10);
  EXPECT_EQ(state_.verdict.kind, VerdictKind::kCleared);
}

TEST_F(DetectorTest, stragglerThatOnlyBecomesFasterIsNotCleared) {
  begin(4);
  windows(10, {0, 0, 8, 0});
  EXPECT_EQ(kinds(windows(30, {0, 0, 3, 0})), Kinds{VerdictKind::kStraggler}) << "the smaller excess is told";
}

TEST_F(DetectorTest, rankThatIsLateInEveryOtherWindowIsNotNamedButOneThatStaysLateSoonIs) {
  begin(4);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(windows(1, {0, 0, 8, 0}).empty());
    EXPECT_TRUE(windows(1, {0, 0, 0, 0}).empty());
  }
  EXPECT_EQ(kinds(windows(15, {0, 0, 8, 0})), Kinds{VerdictKind::kStraggler});
}

TEST_F(DetectorTest, culpritThatMovesIsNamedInTurn) {
  begin(4);
  windows(20, {0, 8, 0, 0});
  windows(20, {0, 0, 0, 8});
  EXPECT_EQ(state_.verdict.ranks, std::vector<int>{13});
  ASSERT_TRUE(state_.cleared);
  EXPECT_EQ(state_.cleared->ranks, std::vector<int>{11});
}

TEST_F(DetectorTest, sameDelayIsNamedWithTheSameSizeWhicheverRankHasIt) {
  begin(4);
  for (std::size_t culprit = 0; culprit < 4; ++culprit) {
    state_ = {};
    std::vector<std::optional<double>> extra(4, 0.0);
    extra[culprit] = 8;
    windows(5, extra);
    EXPECT_EQ(state_.verdict.ranks, std::vector<int>{10 + static_cast<int>(culprit)});
    EXPECT_NEAR(*state_.verdict.excessMs, 8, 1e-9);
  }
}

TEST_F(DetectorTest, causeIsTakenFromTheEvidence) {
  begin(4);
  inputShare_ = 0.95;
  windows(5, {0, 0, 8, 0});
  EXPECT_EQ(state_.verdict.cause, "host_input");
  EXPECT_NEAR(*state_.verdict.evidence.inputMs, 7.6, 1e-9);
  EXPECT_TRUE(contains(state_.verdict.reason, "7.6 ms in the data loader")) << state_.verdict.reason;
}

TEST_F(DetectorTest, halfTheDelayInTheLoaderNamesTheRankButNoCause) {
  begin(4);
  inputShare_ = 0.5;
  windows(5, {0, 0, 8, 0});
  EXPECT_EQ(state_.verdict.ranks, std::vector<int>{12});
  EXPECT_EQ(state_.verdict.cause, "not_attributed");
}

// ---- Missing ranks ----

TEST_F(DetectorTest, rankThatFallsSilentIsMissingAndNobodyIsFlaggedForIt) {
  begin(4);
  windows(10, {0, 0, 0, 0});
  const auto events = windows(30, {0, 0, std::nullopt, 0});
  ASSERT_EQ(kinds(events), Kinds{VerdictKind::kAbstain});
  EXPECT_TRUE(contains(events.front().reason, "incomplete data: nothing was heard of rank 12"))
      << events.front().reason;
  EXPECT_TRUE(events.front().ranks.empty());
  EXPECT_EQ(state_.verdict.kind, VerdictKind::kAbstain);
  EXPECT_EQ(state_.incomplete, 30U);
  EXPECT_EQ(kinds(window({0, 0, 0, 0})), Kinds{VerdictKind::kCleared});
  EXPECT_EQ(state_.verdict.kind, VerdictKind::kNone);
}

TEST_F(DetectorTest, culpritAmongThoseThatTellIsStillNamed) {
  begin(4);
  windows(10, {0, 0, std::nullopt, 0});
  windows(5, {0, 8, std::nullopt, 0});
  EXPECT_EQ(state_.verdict.ranks, std::vector<int>{11});
}

TEST_F(DetectorTest, stragglerThatFallsSilentIsNotCleared) {
  begin(4);
  windows(10, {0, 0, 8, 0});
  EXPECT_EQ(kinds(windows(20, {0, 0, std::nullopt, 0})), Kinds{VerdictKind::kAbstain});
  EXPECT_EQ(state_.verdict.ranks, std::vector<int>{12});
}

TEST_F(DetectorTest, oneOfTwoRanksIsComparedWithNobody) {
  begin(2);
  windows(20, {8, std::nullopt});
  EXPECT_EQ(state_.verdict.kind, VerdictKind::kAbstain);
}

// ---- Arrivals ----

TEST_F(DetectorTest, arrivalsThatAgreeAreEvidence) {
  begin(4);
  windows(5, {0, 0, 0, 0});
  for (int i = 0; i < 5; ++i) {
    input_.arrivals[2].compared += 20;
    input_.arrivals[2].last += 18;
    window({0, 0, 8, 0});
  }
  EXPECT_EQ(state_.verdict.evidence.operations, 100U);
  EXPECT_NEAR(*state_.verdict.evidence.lastShare, 0.9, 1e-9);
  EXPECT_LT(*state_.verdict.evidence.lastPValue, 1e-9);
}

TEST_F(DetectorTest, arrivalsThatContradictSelfTimeMakeItAbstain) {
  begin(4);
  std::vector<Verdict> events;
  for (int i = 0; i < 10; ++i) {
    input_.arrivals[2].compared += 20;
    for (auto& event : window({0, 0, 8, 0})) {
      events.push_back(event);
    }
  }
  ASSERT_EQ(kinds(events), Kinds{VerdictKind::kAbstain}) << "said once";
  EXPECT_TRUE(contains(events.front().reason, "the two disagree")) << events.front().reason;
  EXPECT_EQ(state_.verdict.kind, VerdictKind::kAbstain);
}

// ---- The whole job ----

TEST_F(DetectorTest, everyRankSlowerThanItWasIsJobWideAndThenCleared) {
  begin(4);
  windows(10, {0, 0, 0, 0});
  const auto events = windows(10, {9, 9, 9, 9});
  ASSERT_EQ(kinds(events), Kinds{VerdictKind::kJobWide});
  EXPECT_TRUE(events.front().ranks.empty());
  EXPECT_EQ(events.front().sinceStep, 110);
  EXPECT_NEAR(*events.front().excessMs, 9, 1e-9);
  EXPECT_EQ(kinds(windows(10, {0, 0, 0, 0})), Kinds{VerdictKind::kCleared});
}

TEST_F(DetectorTest, newPaceIsTheJobsOwnAfterTwoHundredWindows) {
  begin(2);
  windows(10, {0, 0});
  const auto events = windows(500, {9, 9});
  ASSERT_EQ(kinds(events), (Kinds{VerdictKind::kJobWide, VerdictKind::kCleared}));
  EXPECT_TRUE(contains(events.back().reason, "the job's own pace now")) << events.back().reason;
}

TEST_F(DetectorTest, oneSlowRankOfTwoIsNoJobWideSlowness) {
  begin(2);
  windows(10, {0, 0});
  EXPECT_EQ(kinds(windows(20, {0, 12})), Kinds{VerdictKind::kStraggler});
}

// ---- Rules of thumb ----

TEST_F(DetectorTest, meanMultipleFiresFromThreeTimesTheTimeOnWithFourRanks) {
  options_.rule = Rule::kMeanMultiple;
  begin(4);
  EXPECT_TRUE(windows(10, {0, 0, 1.9 * kSelfMs, 0}).empty());
  const auto events = windows(3, {0, 0, 2.1 * kSelfMs, 0});
  ASSERT_EQ(kinds(events), Kinds{VerdictKind::kStraggler});
  EXPECT_EQ(events.front().rule, "mean_multiple");
  EXPECT_EQ(events.front().ranks, std::vector<int>{12});
  EXPECT_TRUE(contains(events.front().reason, "raw wall time of a step is 38.00 ms")) << events.front().reason;
}

TEST_F(DetectorTest, medianFiresFromTwiceTheTimeOn) {
  options_.rule = Rule::kMedian;
  begin(4);
  EXPECT_TRUE(windows(10, {0, 0, 0.9 * kSelfMs, 0}).empty());
  EXPECT_EQ(kinds(windows(3, {0, 0, 1.1 * kSelfMs, 0})), Kinds{VerdictKind::kStraggler});
  EXPECT_EQ(kinds(windows(5, {0, 0, 0, 0})), Kinds{VerdictKind::kCleared});
}

TEST_F(DetectorTest, movingAverageComparesARankWithItsOwnPastOnly) {
  options_.rule = Rule::kMovingAverage;
  begin(4);
  EXPECT_TRUE(windows(20, {0, 0, 2 * kSelfMs, 0}).empty()) << "it was like that from the start";
  EXPECT_EQ(kinds(windows(20, {1.1 * kSelfMs, 0, 2 * kSelfMs, 0})), Kinds{VerdictKind::kStraggler})
      << "and stays one, since its past is kept";
}

TEST_F(DetectorTest, rankAloneIsNotJudged) {
  begin(1);
  EXPECT_TRUE(windows(50, {8}).empty());
  EXPECT_EQ(state_.verdict.kind, VerdictKind::kAbstain);
}

TEST_F(DetectorTest, abstainsBeforeThreeWindows) {
  begin(4);
  windows(2, {0, 0, 8, 0});
  EXPECT_EQ(state_.verdict.kind, VerdictKind::kAbstain);
  EXPECT_EQ(state_.verdict.reason,
            "2 windows of steps were compared on all ranks; it takes at least 3 to say anything");
}

}  // namespace
}  // namespace straggler
