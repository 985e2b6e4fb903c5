#include "backend/detect/own_past.h"

#include <algorithm>
#include <cmath>

#include "backend/detect/statistics.h"

namespace straggler {
namespace {

double median(std::vector<double> values) { return quantile(std::move(values), 0.5).value_or(0); }

double deviation(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> deviations;
  for (const double value : values) {
    deviations.push_back(std::abs(value - middle));
  }
  return 1.4826 * median(std::move(deviations));
}

}  // namespace

double commonMs(double pastMs, const std::vector<Level>& others) {
  std::vector<double> added;
  std::vector<double> stretched;
  for (const Level& other : others) {
    added.push_back(other.nowMs - other.pastMs);
    stretched.push_back(other.pastMs > 0 ? pastMs * (other.nowMs / other.pastMs - 1) : 0);
  }
  return std::max({0.0, median(std::move(added)), median(std::move(stretched))});
}

WindowComparison compareWithPast(const WindowRow& row, double pastMs, double commonMs) {
  WindowComparison window = compare(row);
  RankComparison& rank = window.ranks.front();
  const auto& self = row.ranks.front()->selfMs;
  rank.stepExcessMs.clear();
  for (std::size_t step = 0; step < window.steps; ++step) {
    rank.stepExcessMs.push_back(self[step] - pastMs - commonMs);
  }
  rank.excessMs = median(rank.stepExcessMs);
  rank.meanExcessMs = rank.meanSelfMs - pastMs - commonMs;
  window.noiseMs = 1.2533 * deviation(rank.stepExcessMs) / std::sqrt(static_cast<double>(window.steps));
  return window;
}

}  // namespace straggler
