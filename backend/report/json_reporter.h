// JsonReporter: every frame, every verdict as it starts, changes or clears, and the report, as JSON lines in job.jsonl.
#pragma once

#include <memory>
#include <optional>

#include "backend/report/record_file.h"
#include "backend/report/reporter.h"

namespace straggler {

class JsonReporter final : public Reporter {
 public:
  explicit JsonReporter(std::unique_ptr<RecordFile> file) : file_(std::move(file)) {}

  void started(const SessionStart& session) override;
  void received(const Frame& frame) override;
  void changed(const Verdict& verdict, const JobReport& report) override;
  // The verdict in force is written only if it never was.
  void ended(const JobReport& report) override;
  std::uint64_t recordsLost() const override { return file_->linesLost(); }

 private:
  std::unique_ptr<RecordFile> file_;
  std::optional<Verdict> written_;  // the last verdict that was
};

}  // namespace straggler
