#include "backend/detect/arrival_pattern.h"

#include <algorithm>

namespace straggler {

ArrivalPattern arrivalPattern(const OpKey& key, const std::vector<RankArrival>& arrivals) {
  const auto earlier = [](const RankArrival& a, const RankArrival& b) { return a.time < b.time; };
  const auto [first, last] = std::minmax_element(arrivals.begin(), arrivals.end(), earlier);
  ArrivalPattern pattern{key, last->time - first->time, first->bound + last->bound + kStampResolution, last->rank, {}};
  for (const auto& arrival : arrivals) {
    pattern.lateness.push_back({arrival.rank, arrival.time - first->time});
  }
  return pattern;
}

}  // namespace straggler
