#include "backend/session/publisher.h"

#include <string>

#include "backend/report/brief_report.h"

namespace straggler {

void Publisher::publish(const JobReport& report, Instant now) {
  const bool news = !verdict_ || !isSameVerdict(*verdict_, report.verdict);
  last_ = now;
  verdict_ = report.verdict;
  const std::string json = briefJson(report);
  if (json.empty()) {
    return;
  }
  const std::vector<std::uint8_t> bytes(json.begin(), json.end());
  for (const auto& exchange : exchanges_) {
    exchange->publish(bytes, news ? Exchange::Publication::kNews : Exchange::Publication::kFigures);
  }
}

}  // namespace straggler
