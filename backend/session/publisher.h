// Publisher: decides when the root publishes its report, in brief, for torch_straggler.report() on the other ranks.
//
// At the first report and whenever the verdict changes at once; else at most every kPeriod, since figures move with every
// window. A transport that keeps all that was ever set leaves the latter out (Exchange::publish).
//
// Thread safety: the collector's thread alone.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/base/clock.h"
#include "backend/exchange/exchange.h"
#include "backend/report/job_report.h"

namespace straggler {

class Publisher {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(5);

  explicit Publisher(std::vector<std::shared_ptr<Exchange>> exchanges) : exchanges_(std::move(exchanges)) {}

  // Whether there is something to publish: asked first, since a report takes time to make.
  bool due(Instant now, bool verdictChanged) const { return !last_ || verdictChanged || now - *last_ >= kPeriod; }

  void publish(const JobReport& report, Instant now);

 private:
  std::vector<std::shared_ptr<Exchange>> exchanges_;
  std::optional<Instant> last_;
  std::optional<Verdict> verdict_;  // that was published last
};

}  // namespace straggler
