#include "backend/report/text_reporter.h"

#include "backend/report/text_report.h"
#include "backend/report/verdict_text.h"

namespace straggler {
namespace {

// Only what asks for somebody's attention is a warning.
Severity severityOf(VerdictKind kind) {
  const bool slow = kind == VerdictKind::kStraggler || kind == VerdictKind::kImbalance ||
                    kind == VerdictKind::kNetwork || kind == VerdictKind::kJobWide;
  return slow ? Severity::kWarning : Severity::kInfo;
}

}  // namespace

void TextReporter::armed(const JobReport& report) { log_->line(Severity::kInfo, armedLine(report)); }
void TextReporter::changed(const Verdict& verdict, const JobReport& report) {
  log_->line(severityOf(verdict.kind), verdictLines(verdict, report));
}
void TextReporter::ended(const JobReport& report) { log_->line(Severity::kInfo, textReport(report)); }

}  // namespace straggler
