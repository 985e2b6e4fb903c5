#include "backend/report/text_reporter.h"

#include <gtest/gtest.h>

#include "backend/report/text_report.h"
#include "backend/report/verdict_text.h"
#include "tests/fakes/recording_log.h"
#include "tests/fakes/recording_reporter.h"
#include "tests/fakes/reports.h"

namespace straggler {
namespace {

using Lines = std::vector<std::pair<Severity, std::string>>;

TEST(TextReporter, saysWhatItSeesEveryVerdictAndTheReport) {
  const auto log = std::make_shared<RecordingLog>();
  TextReporter reporter(log);
  const JobReport report = smallReport();
  reporter.started({});
  reporter.received({});
  reporter.armed(report);
  reporter.changed(report.verdict, report);
  reporter.ended(report);
  EXPECT_EQ(log->lines, (Lines{{Severity::kInfo, armedLine(report)},
                               {Severity::kWarning, verdictLines(report.verdict, report)},
                               {Severity::kInfo, textReport(report)}}));
}

TEST(TextReporter, onlyWhatAsksForAttentionIsAWarning) {
  const auto log = std::make_shared<RecordingLog>();
  TextReporter reporter(log);
  Verdict verdict = smallReport().verdict;
  for (const auto kind : {VerdictKind::kStraggler, VerdictKind::kImbalance, VerdictKind::kNetwork,
                          VerdictKind::kJobWide, VerdictKind::kCleared, VerdictKind::kNone, VerdictKind::kAbstain}) {
    verdict.kind = kind;
    reporter.changed(verdict, smallReport());
  }
  std::vector<bool> warnings;
  for (const auto& [severity, text] : log->lines) {
    warnings.push_back(severity == Severity::kWarning);
  }
  EXPECT_EQ(warnings, (std::vector<bool>{true, true, true, true, false, false, false}));
}

TEST(CompositeReporter, passesEverythingOnInOrderAndAddsUpWhatWasLost) {
  auto first = std::make_shared<RecordingReporter::Log>();
  auto second = std::make_shared<RecordingReporter::Log>();
  first->lost = 2;
  second->lost = 3;
  std::vector<std::unique_ptr<Reporter>> reporters;
  reporters.push_back(std::make_unique<RecordingReporter>(first));
  reporters.push_back(std::make_unique<RecordingReporter>(second));
  CompositeReporter composite(std::move(reporters));
  composite.started({});
  composite.received({});
  composite.armed({});
  composite.changed({}, {});
  composite.ended({});
  const std::vector<std::string> expected = {"started", "received", "armed", "changed", "ended"};
  EXPECT_EQ(first->calls, expected);
  EXPECT_EQ(second->calls, expected);
  EXPECT_EQ(composite.recordsLost(), 5U);
}

}  // namespace
}  // namespace straggler
