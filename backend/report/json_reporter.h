// JsonReporter: every frame, the verdict and the report, as JSON lines in job.jsonl.
#pragma once

#include <memory>

#include "backend/report/record_file.h"
#include "backend/report/reporter.h"

namespace straggler {

class JsonReporter final : public Reporter {
 public:
  explicit JsonReporter(std::unique_ptr<RecordFile> file) : file_(std::move(file)) {}

  void started(const SessionStart& session) override;
  void received(const Frame& frame) override;
  void ended(const JobReport& report) override;
  std::uint64_t recordsLost() const override { return file_->linesLost(); }

 private:
  std::unique_ptr<RecordFile> file_;
};

}  // namespace straggler
