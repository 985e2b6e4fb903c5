#include "backend/report/json_reporter.h"

namespace straggler {

void JsonReporter::started(const SessionStart& session) {
  file_->line(toJson(session));
  file_->flush();
}

void JsonReporter::received(const Frame& frame) {
  for (const auto& message : frame.messages) {
    file_->line(toJson(frame.rank, message));
  }
  file_->flush();
}

void JsonReporter::changed(const Verdict& verdict, const JobReport& report) {
  file_->line(toJson(verdict, report));
  file_->flush();
  written_ = verdict;
}

void JsonReporter::ended(const JobReport& report) {
  if (!written_ || !isSameVerdict(*written_, report.verdict)) {
    file_->line(toJson(report.verdict, report));
  }
  file_->line(toJson(report));
  file_->flush();
}

}  // namespace straggler
