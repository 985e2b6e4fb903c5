// TextReporter: the armed line and the report, as text on a file descriptor (standard error).
#pragma once

#include "backend/report/reporter.h"

namespace straggler {

// Writes all of `text`; gives up where the descriptor fails.
void writeText(int descriptor, const std::string& text) noexcept;

class TextReporter final : public Reporter {
 public:
  explicit TextReporter(int descriptor) : descriptor_(descriptor) {}

  void armed(const JobReport& report) override;
  void ended(const JobReport& report) override;

 private:
  int descriptor_;
};

}  // namespace straggler
