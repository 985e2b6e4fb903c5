#include "backend/report/mitigation_text.h"

#include <gtest/gtest.h>

#include "backend/report/verdict_text.h"
#include "tests/fakes/reports.h"

namespace straggler {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Verdict verdict(VerdictKind kind, std::vector<int> ranks = {}) {
  Verdict made;
  made.kind = kind;
  made.ranks = std::move(ranks);
  return made;
}

// ---- Under a verdict ----

TEST(MitigationLine, standsBetweenWhyAndNext) {
  EXPECT_TRUE(contains(verdictLines(mitigatedReport().verdict, mitigatedReport()),
                       "of its peers\n"
                       "  mitigation carries its late gradients: 41 slots were filled for it, 3.2 s saved\n"
                       "  next: look at what rank 1 does"));
}

TEST(MitigationLine, isNothingWhereMitigationIsOffOrTheVerdictIsOfNobody) {
  EXPECT_EQ(mitigationLine(verdict(VerdictKind::kStraggler, {1}), smallReport()), "");
  EXPECT_EQ(mitigationLine(verdict(VerdictKind::kImbalance), smallReport()), "");
  EXPECT_EQ(mitigationLine(verdict(VerdictKind::kStraggler, {7}), mitigatedReport()), "") << "rank 7 told nothing";
  EXPECT_EQ(mitigationLine(verdict(VerdictKind::kJobWide, {1}), mitigatedReport()), "");
  EXPECT_EQ(mitigationLine(verdict(VerdictKind::kCleared, {1}), mitigatedReport()), "");
}

TEST(MitigationLine, ofAnImbalanceIsTheSumOverAllRanks) {
  JobReport report = mitigatedReport();
  report.mitigation.front().filledByProxy = 9;
  report.mitigation.front().savedMs = 1'000;
  EXPECT_EQ(mitigationLine(verdict(VerdictKind::kImbalance), report),
            "  mitigation carries their late gradients: 50 slots were filled for them, 4.2 s saved\n");
}

TEST(MitigationLine, whereNothingWasFilledIsItsText) {
  JobReport report = mitigatedReport();
  EXPECT_EQ(mitigationLine(verdict(VerdictKind::kStraggler, {0}), report),
            "  mitigation is armed: gradients of group 0, quorum 1 of 2\n");
  report.mitigation.front().armed = false;
  report.mitigation.front().text = "buckets are not known yet";
  EXPECT_EQ(mitigationLine(verdict(VerdictKind::kStraggler, {0}), report),
            "  mitigation is not armed: buckets are not known yet\n");
  report.mitigation.front().text.clear();
  EXPECT_EQ(mitigationLine(verdict(VerdictKind::kStraggler, {0}), report), "  mitigation is not armed\n");
}

TEST(MitigationLine, thatStoodDownSaysWhyAndWhatItDid) {
  JobReport report = mitigatedReport();
  report.mitigation.back().armed = false;
  report.mitigation.back().text = "the store is gone";
  report.mitigation.back().filledByProxy = 1;
  EXPECT_EQ(mitigationLine(verdict(VerdictKind::kStraggler, {1}), report),
            "  mitigation is not armed: the store is gone; 1 slot was filled for it, 3.2 s saved\n");
}

TEST(MitigationLine, dropsWhereLateGradientsAreDiscarded) {
  JobReport report = mitigatedReport();
  report.mitigation.back().mode = "drop";
  EXPECT_EQ(mitigationLine(verdict(VerdictKind::kStraggler, {1}), report),
            "  mitigation drops its late gradients: 41 slots were filled for it, 3.2 s saved\n");
}

// ---- At the end ----

TEST(MitigationTable, isNothingWhereMitigationIsOff) { EXPECT_EQ(mitigationTable(smallReport()), ""); }

TEST(MitigationTable, isOneLineWhereNoSlotWasFilled) {
  JobReport report = mitigatedReport();
  report.mitigation.pop_back();
  EXPECT_EQ(mitigationTable(report), "Mitigation (carry): armed: gradients of group 0, quorum 1 of 2\n");
}

TEST(MitigationTable, rankThatSaysSomethingElseThanMostHasALineAndARow) {
  JobReport report = mitigatedReport();
  report.mitigation.push_back(report.mitigation.front());
  report.mitigation.back().rank = 2;
  report.mitigation.front().armed = false;
  report.mitigation.front().text = "the store is gone";
  EXPECT_EQ(mitigationTable(report),
            "Mitigation (carry): rank 1, 2 armed: gradients of group 0, quorum 1 of 2\n"
            "Mitigation (carry): rank 0 not armed: the store is gone\n"
            "rank  filled  late  applied  dropped  owed  staleness  max  saved (s)\n"
            "0          0     0        0        0     0          -    -        0.0\n"
            "1         41    40       37        1     2       2.00    5        3.2\n");
}

TEST(MitigationTable, ofManyStatesEightAreListed) {
  JobReport report = mitigatedReport();
  report.mitigation.resize(1);
  for (int rank = 1; rank < 20; ++rank) {
    report.mitigation.push_back(report.mitigation.front());
    report.mitigation.back().rank = rank;
    report.mitigation.back().text = "for reason " + std::to_string(rank);
  }
  const std::string text = mitigationTable(report);
  EXPECT_TRUE(contains(text, "rank 7 armed: for reason 7\nMitigation: the other ranks say something else each\n"))
      << text;
  EXPECT_FALSE(contains(text, "for reason 8"));
}

}  // namespace
}  // namespace straggler
