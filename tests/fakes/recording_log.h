// RecordingLog: keeps what it is told, for one thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backend/report/log.h"

namespace straggler {

class RecordingLog final : public Log {
 public:
  void line(Severity severity, const std::string& text) noexcept override { lines.emplace_back(severity, text); }
  void flush(Duration /*patience*/) noexcept override { ++flushes; }

  std::vector<std::pair<Severity, std::string>> lines;
  int flushes = 0;
};

}  // namespace straggler
