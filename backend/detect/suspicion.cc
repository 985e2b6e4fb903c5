#include "backend/detect/suspicion.h"

#include <algorithm>

#include "backend/detect/statistics.h"

namespace straggler {
namespace {

// The step from which on a rank is above the gate: where the sum of what it is above has its minimum.
//   excess 0 0 8 8 8, gate 1: sums -1 -2 5 12 19 -> the third step
std::size_t firstStepAbove(const std::vector<double>& excessMs, double gateMs) {
  double sum = 0;
  double smallest = 0;
  std::size_t first = 0;
  for (std::size_t step = 0; step < excessMs.size(); ++step) {
    sum += excessMs[step] - gateMs;
    if (sum < smallest) {
      smallest = sum;
      first = step + 1;
    }
  }
  return std::min(first, excessMs.empty() ? 0 : excessMs.size() - 1);
}

}  // namespace

void Recent::add(double value) {
  if (values_.size() < capacity_) {
    values_.push_back(value);
  } else {
    values_[next_] = value;
  }
  next_ = (next_ + 1) % capacity_;
}

std::optional<double> Recent::median(std::size_t atLeast) const {
  return values_.size() < atLeast ? std::nullopt : quantile(values_, 0.5);
}

void Suspicion::begin(const RankComparison& rank, const WindowComparison& window, double gateMs) {
  sinceStep = window.firstStep + static_cast<std::int64_t>(firstStepAbove(rank.stepExcessMs, gateMs));
  windows = above = 0;
  for (Recent* evidence : {&excess_, &input_, &cpu_, &runDelay_}) {
    evidence->clear();
  }
  os_.clear();
  before_ = seen_;
  excessMs.clear();
}

void Suspicion::add(const RankComparison& rank, const WindowComparison& window, double gateMs, bool isAbove,
                    const ArrivalCounts& arrivals) {
  const bool suspected = test.on || test.score > 0;
  if (suspected && windows == 0) {
    begin(rank, window, gateMs);
  }
  seen_ = arrivals;
  excessMs.add(rank.excessMs);
  if (!suspected) {
    windows = 0;
    contradicted = false;
    return;
  }
  ++windows;
  above += isAbove ? 1 : 0;
  excess_.add(rank.meanExcessMs);
  input_.add(rank.inputMs);
  cpu_.add(rank.cpuMs);
  runDelay_.add(rank.runDelayMs);
  if (!rank.os.empty()) {
    os_.add({rank.os, rank.osPeers});
  }
}

double Suspicion::meanExcessMs() const { return excess_.median().value_or(0); }

Evidence Suspicion::evidence(const ArrivalCounts& now, std::size_t ranks) const {
  Evidence evidence;
  evidence.windows = windows;
  evidence.inputMs = input_.median();
  evidence.cpuMs = cpu_.median();
  evidence.runDelayMs = runDelay_.median();
  const RecentOs::Window os = os_.mean();
  evidence.os = os.rank;
  evidence.osPeers = os.peers;
  evidence.operations = now.compared - before_.compared;
  if (evidence.operations > 0) {
    const std::uint64_t last = now.last - before_.last;
    evidence.lastShare = static_cast<double>(last) / static_cast<double>(evidence.operations);
    evidence.lastPValue = binomialTail(last, evidence.operations, lastChance(now, ranks));
  }
  return evidence;
}

double Suspicion::lastChance(const ArrivalCounts& now, std::size_t ranks) const {
  const auto operations = static_cast<double>(now.compared - before_.compared);
  const double more = operations > 0 ? (now.moreLikely - before_.moreLikely) / operations : 0;
  return std::clamp((1 + more) / static_cast<double>(ranks), 1e-9, 0.5);
}

}  // namespace straggler
