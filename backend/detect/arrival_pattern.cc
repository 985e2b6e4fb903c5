#include "backend/detect/arrival_pattern.h"

#include <algorithm>

namespace straggler {
namespace {

// The true last arrival lies between the largest (time - bound) and the largest (time + bound) of all ranks, whichever of
// them was last; the true first likewise.
Duration boundOfSkew(const std::vector<RankArrival>& arrivals, Instant first, Instant last) {
  Instant earliestFirst = Instant::max();
  Instant latestFirst = Instant::max();
  Instant earliestLast = Instant::min();
  Instant latestLast = Instant::min();
  for (const auto& arrival : arrivals) {
    earliestFirst = std::min(earliestFirst, arrival.time - arrival.bound);
    latestFirst = std::min(latestFirst, arrival.time + arrival.bound);
    earliestLast = std::max(earliestLast, arrival.time - arrival.bound);
    latestLast = std::max(latestLast, arrival.time + arrival.bound);
  }
  return std::max(first - earliestFirst, latestFirst - first) + std::max(last - earliestLast, latestLast - last) +
         kStampResolution;
}

bool isAfter(const RankArrival& last, const RankArrival& other) {
  return last.clock == other.clock ? last.time >= other.time : last.time - last.bound >= other.time + other.bound;
}

}  // namespace

ArrivalPattern arrivalPattern(const OpKey& key, const std::vector<RankArrival>& arrivals) {
  const auto earlier = [](const RankArrival& a, const RankArrival& b) { return a.time < b.time; };
  const auto [first, last] = std::minmax_element(arrivals.begin(), arrivals.end(), earlier);
  ArrivalPattern pattern{key,
                         last->time - first->time,
                         boundOfSkew(arrivals, first->time, last->time),
                         last->rank,
                         std::all_of(arrivals.begin(), arrivals.end(),
                                     [&last = *last](const auto& arrival) { return isAfter(last, arrival); }),
                         {}};
  for (const auto& arrival : arrivals) {
    pattern.lateness.push_back({arrival.rank, arrival.time - first->time});
  }
  return pattern;
}

}  // namespace straggler
