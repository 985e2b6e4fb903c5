#include "backend/report/text_reporter.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "backend/report/text_report.h"

namespace straggler {

void writeText(int descriptor, const std::string& text) noexcept {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = write(descriptor, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void TextReporter::armed(const JobReport& report) { writeText(descriptor_, armedLine(report)); }
void TextReporter::ended(const JobReport& report) { writeText(descriptor_, textReport(report)); }

}  // namespace straggler
