#include "backend/detect/imbalance.h"

#include <algorithm>
#include <numeric>

namespace straggler {
namespace {

constexpr double kAbsoluteGateMs = 1;
constexpr double kRelativeGate = 0.1;

}  // namespace

double Imbalance::largestShare() const {
  const auto all = std::accumulate(timesLargest_.begin(), timesLargest_.end(), std::uint64_t{0});
  const auto most = timesLargest_.empty() ? 0 : *std::max_element(timesLargest_.begin(), timesLargest_.end());
  return all == 0 ? 0 : static_cast<double>(most) / static_cast<double>(all);
}

// Of two, one is always the later: only three quarters of the steps tell.
bool Imbalance::oneRankHasIt(std::size_t told) const { return largestShare() >= (told == 2 ? 0.75 : 0.5); }

// Forgets what there was; says whether that changes anything.
bool Imbalance::stop() {
  const bool was = test_.on;
  *this = Imbalance();
  return was;
}

bool Imbalance::add(const WindowComparison& window, bool blamed, double limit) {
  if (blamed) {
    return stop();
  }
  if (test_.score == 0) {
    sinceStep_ = window.firstStep;
    timesLargest_.assign(window.ranks.size(), 0);
    excess_.clear();
  }
  const double gateMs = std::max(kAbsoluteGateMs, kRelativeGate * window.stepMs);
  const auto change = test_.add(window.spreadMs, gateMs, 0, limit);
  excess_.add(window.spreadMs);
  for (std::size_t i = 0; i < window.ranks.size(); ++i) {
    timesLargest_[i] += window.ranks[i].timesLargest;
  }
  if (change == Cusum::Change::kOff) {
    return stop();
  }
  if (change == Cusum::Change::kOn && !oneRankHasIt(window.told)) {
    test_.on = true;
    return true;
  }
  return false;
}

}  // namespace straggler
