#include "backend/report/verdict_text.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/fakes/reports.h"

namespace straggler {
namespace {

bool beginsWith(const std::string& text, const std::string& begin) { return text.rfind(begin, 0) == 0; }
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Verdict verdict(VerdictKind kind, std::vector<int> ranks = {}) {
  Verdict made = smallReport().verdict;
  made.kind = kind;
  made.ranks = std::move(ranks);
  return made;
}

Verdict said(VerdictKind kind, std::int64_t since, std::int64_t step, std::vector<int> ranks = {}) {
  Verdict made = verdict(kind, std::move(ranks));
  made.sinceStep = since;
  made.step = step;
  return made;
}

TEST(VerdictText, stragglerIsNamedWithItsHostAndThenWhyAndNext) {
  EXPECT_EQ(verdictLines(smallReport().verdict, smallReport()),
            "STRAGGLER rank 1 (node-bb) cause=not_attributed +8.1 ms/step (24 % of the step) since step 35\n"
            "  why: self time 8.07 ms a step above the median of its peers\n"
            "  next: look at what rank 1 does between its collectives: its input, its Python threads, its processor\n");
}

TEST(VerdictText, whatToLookAtDependsOnTheCause) {
  Verdict made = verdict(VerdictKind::kStraggler, {1});
  const auto next = [&](const char* cause) {
    made.cause = cause;
    const std::string text = verdictLines(made, smallReport());
    return text.substr(text.find("  next: "));
  };
  EXPECT_EQ(next("host_input"),
            "  next: look at rank 1's data loader: its disk, the number of its workers, what they compute\n");
  EXPECT_EQ(next("host_launch"),
            "  next: look at what else runs on rank 1's processor, its CPU quota, and the pinning of its threads\n");
  EXPECT_EQ(next("host_compute"),
            "  next: look at what rank 1's Python or its CPU tensors compute that other ranks do not\n");
}

TEST(VerdictText, severalRanksAreListedUpToEight) {
  EXPECT_TRUE(beginsWith(verdictLines(verdict(VerdictKind::kStraggler, {1, 0, 7}), smallReport()),
                         "STRAGGLER rank 1 (node-bb), 0 (node-a), 7 (?) cause="));
  std::vector<int> many(20);
  for (int rank = 0; rank < 20; ++rank) {
    many[static_cast<std::size_t>(rank)] = rank;
  }
  EXPECT_TRUE(
      contains(verdictLines(verdict(VerdictKind::kStraggler, many), smallReport()), ", 7 (?) and 12 more cause="));
}

TEST(VerdictText, figuresThatAreNotKnownAreLeftOut) {
  Verdict made = verdict(VerdictKind::kStraggler, {1});
  made.excessMs = made.share = std::nullopt;
  made.sinceStep = std::nullopt;
  EXPECT_TRUE(
      beginsWith(verdictLines(made, smallReport()), "STRAGGLER rank 1 (node-bb) cause=not_attributed\n  why: "));
}

TEST(VerdictText, stageImbalanceTellsItsCauseAndWhatToDo) {
  Verdict uneven = verdict(VerdictKind::kImbalance);
  uneven.cause = "stage_imbalance";
  const std::string text = verdictLines(uneven, smallReport());
  EXPECT_TRUE(beginsWith(text, "IMBALANCE cause=stage_imbalance +8.1 ms/step")) << text;
  EXPECT_TRUE(contains(text, "next: look at how the layers are spread over the stages")) << text;
}

TEST(VerdictText, networkTellsItsGroupAndNoRank) {
  Verdict slow = verdict(VerdictKind::kNetwork);
  slow.ranks.clear();
  slow.group = "dp1";
  const std::string text = verdictLines(slow, smallReport());
  EXPECT_TRUE(beginsWith(text, "NETWORK group 'dp1' +8.1 ms/step (24 % of the step) since step 35\n  why: ")) << text;
  EXPECT_TRUE(contains(text, "next: look at the links between these ranks")) << text;
}

TEST(VerdictText, whereNobodyIsToBlameNobodyIsNamed) {
  EXPECT_TRUE(beginsWith(verdictLines(verdict(VerdictKind::kImbalance), smallReport()),
                         "IMBALANCE +8.1 ms/step (24 % of the step) since step 35\n  why: self time"));
  EXPECT_TRUE(contains(verdictLines(verdict(VerdictKind::kImbalance), smallReport()),
                       "next: look at what makes another rank late"));
  EXPECT_TRUE(beginsWith(verdictLines(verdict(VerdictKind::kJobWide), smallReport()),
                         "JOB WIDE +8.1 ms/step (24 % of the step) since step 35\n  why: self time"));
  EXPECT_TRUE(
      contains(verdictLines(verdict(VerdictKind::kJobWide), smallReport()), "next: look at what all ranks share"));
}

TEST(VerdictText, whatIsOverOrNotKnownIsOneLine) {
  Verdict made = verdict(VerdictKind::kCleared, {1});
  made.reason = "its excess is gone";
  EXPECT_EQ(verdictLines(made, smallReport()), "CLEARED rank 1 (node-bb): its excess is gone\n");
  made.ranks.clear();
  EXPECT_EQ(verdictLines(made, smallReport()), "CLEARED: its excess is gone\n");
  made.kind = VerdictKind::kNone;
  EXPECT_EQ(verdictLines(made, smallReport()), "NO STRAGGLER: its excess is gone\n");
  made.kind = VerdictKind::kAbstain;
  EXPECT_EQ(verdictLines(made, smallReport()), "NO VERDICT: its excess is gone\n");
}

// ---- What was said before ----

TEST(EarlierLines, verdictInForceIsNotAnEarlierOne) {
  JobReport report = smallReport();
  EXPECT_EQ(earlierLines(report), "");
  report.history = {report.verdict};
  report.verdict.excessMs = 9.5;  // its figures have moved on
  EXPECT_EQ(earlierLines(report), "");
}

TEST(EarlierLines, eachLastedUntilTheNextWasSaid) {
  JobReport report = smallReport();
  report.history = {said(VerdictKind::kStraggler, 30, 60, {1}), said(VerdictKind::kCleared, 30, 210, {1}),
                    said(VerdictKind::kJobWide, 300, 330), said(VerdictKind::kStraggler, 400, 430, {0, 1})};
  report.verdict = verdict(VerdictKind::kNone);
  EXPECT_EQ(earlierLines(report),
            "earlier: STRAGGLER rank 1, +8.1 ms/step, steps 30 to 210\n"
            "earlier: JOB WIDE, +8.1 ms/step, steps 300 to 430\n"
            "earlier: STRAGGLER rank 0, 1, +8.1 ms/step, steps 400 to 430\n");
}

TEST(EarlierLines, onlyTheLastTenAreListed) {
  JobReport report = smallReport();
  for (int i = 0; i < 13; ++i) {
    report.history.push_back(said(VerdictKind::kStraggler, i, i + 1, {1}));
  }
  const std::string text = earlierLines(report);
  EXPECT_TRUE(
      beginsWith(text, "earlier: 3 more, before these\nearlier: STRAGGLER rank 1, +8.1 ms/step, steps 3 to 5\n"))
      << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11);
}

}  // namespace
}  // namespace straggler
