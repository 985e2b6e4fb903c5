// TextReporter: the armed line, a line for each verdict and the report at the end, as text in a log.
#pragma once

#include <memory>
#include <utility>

#include "backend/report/log.h"
#include "backend/report/reporter.h"

namespace straggler {

class TextReporter final : public Reporter {
 public:
  explicit TextReporter(std::shared_ptr<Log> log) : log_(std::move(log)) {}

  void armed(const JobReport& report) override;
  void changed(const Verdict& verdict, const JobReport& report) override;
  void ended(const JobReport& report) override;

 private:
  std::shared_ptr<Log> log_;
};

}  // namespace straggler
