#include "backend/detect/pace.h"

#include <algorithm>

#include "backend/detect/statistics.h"

namespace straggler {
namespace {

constexpr double kAbsoluteGateMs = 1;
constexpr double kRelativeGate = 0.1;
constexpr double kMostRanks = 0.75;

}  // namespace

bool Pace::mostAreAbove(const std::vector<double>& excess, double gateMs) const {
  const auto above = std::count_if(excess.begin(), excess.end(), [gateMs](double x) { return x > gateMs / 2; });
  return static_cast<double>(above) >= kMostRanks * static_cast<double>(excess.size());
}

bool Pace::add(const WindowComparison& window, double limit) {
  past_.resize(window.ranks.size(), Recent(kPast));
  if (past_.front().size() < kMinPast) {
    for (std::size_t i = 0; i < past_.size(); ++i) {
      past_[i].add(window.ranks[i].selfMs);
    }
    return false;
  }
  std::vector<double> excess;
  std::vector<double> pasts;
  for (std::size_t i = 0; i < past_.size(); ++i) {
    pasts.push_back(*past_[i].median());
    excess.push_back(window.ranks[i].selfMs - pasts.back());
  }
  pastMs_ = *quantile(pasts, 0.5);
  const double gateMs = std::max(kAbsoluteGateMs, kRelativeGate * pastMs_);
  const bool most = mostAreAbove(excess, gateMs);
  const double middle = most ? *quantile(excess, 0.5) : std::min(0.0, *quantile(excess, 0.5));

  if (test_.score == 0) {
    sinceStep_ = window.firstStep;
    excess_.clear();
  }
  const auto change = test_.add(middle, gateMs, window.noiseMs, limit);
  excess_.add(middle);
  if (test_.score == 0) {
    for (std::size_t i = 0; i < past_.size(); ++i) {
      past_[i].add(window.ranks[i].selfMs);
    }
  }
  windows_ = test_.on ? windows_ + 1 : 0;
  if (windows_ >= kSettled) {
    *this = Pace();
    settled_ = true;
    return true;
  }
  if (change == Cusum::Change::kOff) {
    test_ = {};
    settled_ = false;
    return true;
  }
  if (change == Cusum::Change::kOn) {
    test_.on = true;
    return true;
  }
  return false;
}

}  // namespace straggler
