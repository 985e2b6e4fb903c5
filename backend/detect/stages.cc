#include "backend/detect/stages.h"

#include <algorithm>
#include <numeric>

namespace straggler {
namespace {

constexpr double kAbsoluteGateMs = 1;
constexpr double kRelativeGate = 0.1;
constexpr double kMostWindows = 0.75;

}  // namespace

bool Stages::stop() {
  const bool was = test_.on;
  *this = Stages();
  return was;
}

bool Stages::add(const std::vector<StageLoad>& loads, std::int64_t firstStep, bool blamed, double limit) {
  if (blamed || loads.size() < 2) {
    return stop();
  }
  if (test_.score == 0 || timesBusiest_.size() != loads.size()) {
    sinceStep_ = firstStep;
    timesBusiest_.assign(loads.size(), 0);
    excess_.clear();
  }
  double sum = 0;
  double stepMs = 0;
  limiting_ = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    sum += loads[i].busy();
    stepMs = std::max(stepMs, loads[i].stepMs);
    limiting_ = loads[i].busy() > loads[limiting_].busy() ? i : limiting_;
  }
  busy_ = loads[limiting_].busy();
  meanBusy_ = sum / static_cast<double>(loads.size());
  ++timesBusiest_[limiting_];
  const double excess = share() * stepMs;
  const auto change = test_.add(excess, std::max(kAbsoluteGateMs, kRelativeGate * stepMs), 0, limit);
  excess_.add(excess);
  if (change == Cusum::Change::kOff) {
    return stop();
  }
  const auto all = std::accumulate(timesBusiest_.begin(), timesBusiest_.end(), std::uint64_t{0});
  const bool persists = static_cast<double>(timesBusiest_[limiting_]) >= kMostWindows * static_cast<double>(all);
  if (change == Cusum::Change::kOn && persists) {
    test_.on = true;
    return true;
  }
  return false;
}

}  // namespace straggler
