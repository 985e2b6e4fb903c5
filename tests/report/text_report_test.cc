#include "backend/report/text_report.h"

#include <gtest/gtest.h>

#include "tests/fakes/reports.h"

namespace straggler {
namespace {

bool beginsWith(const std::string& text, const std::string& begin) { return text.rfind(begin, 0) == 0; }
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The whole text, so that every change of it shows.
TEST(TextReport, wholeTextOfASmallReport) {
  EXPECT_EQ(textReport(smallReport()),
            R"(STRAGGLER rank 1 (node-bb) cause=not_attributed +8.1 ms/step (24 % of the step) since step 35
  why: self time 8.07 ms a step above the median of its peers
  next: look at what rank 1 does between its collectives: its input, its Python threads, its processor
straggler: 2 of 2 ranks, 295 steps compared (steps found by the backward), 1200 collectives seen, 4 records dropped
rank     host  ms/step   self  wait  late p50  late p95  late max  times last  time lost
0      node-a    34.00  25.00  9.00      0.00      0.25      1.50       3/900      0.0 %
1     node-bb    34.00  33.07  0.93      8.01      8.50     12.12     897/900     23.6 %
arrival skew (ms)  operations    p50    p95     max  bound
all_reduce                890  8.000  8.600  12.125  0.001
broadcast                  10  0.500  0.750   1.000  0.001
note: 4 records were dropped or could not be written
)");
}

TEST(TextReport, clocksOtherThanTheRootsHaveATableOfTheirOwn) {
  EXPECT_TRUE(contains(textReport(clocksReport()), R"(broadcast                  10  0.500  0.750   1.000  0.001
clock of rank  offset (ms)  bound  drift (ppm)  bound  over (s)  leaps
2, 3             10000.125  0.250       -100.0    4.5       118      1
4                        -      -            -      -         -      0
note: 4 records)"))
      << textReport(clocksReport());
}

TEST(TextReport, mitigationIsTheLastTableAndNotesFollow) {
  EXPECT_TRUE(contains(textReport(mitigatedReport()),
                       R"(broadcast                  10  0.500  0.750   1.000  0.001
Mitigation (carry): armed: gradients of group 0, quorum 1 of 2
rank  filled  late  applied  dropped  owed  staleness  max  saved (s)
1         41    40       37        1     2       2.00    5        3.2
note: 4 records)"))
      << textReport(mitigatedReport());
}

TEST(TextReport, armedLineSaysWhoIsSeenAndWhatIsNotMeasured) {
  EXPECT_EQ(armedLine(smallReport()),
            "straggler: armed: 2 of 2 ranks seen on 2 hosts, 1 group; measured: arrival, lateness, self and wait time "
            "(host clock); not measured: point to point lateness, captured graphs\n"
            "straggler: armed: rule self_time: a rank is named from an excess of 3 % of the step on, at least 0.5 ms, "
            "and above the noise\n");
  JobReport partly = smallReport();
  partly.worldSize = 4;
  partly.clocks = 2;
  EXPECT_TRUE(beginsWith(armedLine(partly), "straggler: armed: 2 of 4 ranks seen on 2 hosts"));
  EXPECT_TRUE(contains(armedLine(partly), "2 clocks related by the traffic"));
}

TEST(TextReport, whatWasSaidBeforeFollowsTheVerdictInForce) {
  JobReport report = smallReport();
  Verdict earlier = report.verdict;
  earlier.ranks = {0};
  earlier.step = 30;
  report.history = {earlier, report.verdict};
  report.history.back().step = 60;
  EXPECT_TRUE(contains(textReport(report),
                       "its processor\nearlier: STRAGGLER rank 0, +8.1 ms/step, steps 35 to 60\nstraggler: 2 of 2 "))
      << textReport(report);
}

TEST(TextReport, whatWasNotMeasuredIsADashAndARankThatIsMissingSaysSo) {
  JobReport report = smallReport();
  report.ranks[1] = {};
  report.ranks[1].rank = 1;
  const std::string text = textReport(report);
  EXPECT_TRUE(
      contains(text, "\n1     (missing)        -      -     -         -         -         -           -          -\n"))
      << text;
}

TEST(TextReport, withoutComparedOperationsItSaysSo) {
  JobReport report = smallReport();
  report.skew.clear();
  EXPECT_TRUE(contains(textReport(report), "arrival skew: no operation was compared on all ranks of its group\n"));
}

TEST(TextReport, saysHowStepsWereFound) {
  JobReport report = smallReport();
  report.foundBy = StepsFoundBy::kOpPeriod;
  EXPECT_TRUE(contains(textReport(report), "steps found by the period of the operations"));
  report.foundBy = StepsFoundBy::kTime;
  EXPECT_TRUE(contains(textReport(report), "windows of a second instead"));
  report.foundBy = StepsFoundBy::kNone;
  EXPECT_TRUE(contains(textReport(report), "no steps found"));
}

TEST(TextReport, reportOfNothingIsStillAReport) {
  EXPECT_TRUE(beginsWith(textReport(JobReport{}), "NO VERDICT: "));
  EXPECT_TRUE(beginsWith(armedLine(JobReport{}), "straggler: armed: 0 of 0 ranks seen on 0 hosts, 0 groups"));
}

}  // namespace
}  // namespace straggler
