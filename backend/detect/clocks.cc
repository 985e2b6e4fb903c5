#include "backend/detect/clocks.h"

#include <algorithm>

namespace straggler {

void Clocks::setDomain(int rank, const std::string& domain) {
  const auto name = domain.empty() ? "rank " + std::to_string(rank) : domain;
  domainOfRank_[rank] = domains_.try_emplace(name, domains_.size()).first->second;
}

std::optional<Clocks::Domain> Clocks::domainOf(int rank) const {
  const auto found = domainOfRank_.find(rank);
  return found == domainOfRank_.end() ? std::nullopt : std::optional(found->second);
}

void Clocks::observe(const std::vector<RankSample>& samples) {
  if (domains_.size() < 2) {
    return;
  }
  // The tightest that the reference ranks give: the latest arrival and the earliest completion.
  std::optional<Instant> arrival;
  std::optional<Instant> completed;
  for (const auto& sample : samples) {
    if (domainOf(sample.rank) == kReference) {
      arrival = std::max(arrival.value_or(sample.arrival), sample.arrival);
      if (sample.completed) {
        completed = std::min(completed.value_or(*sample.completed), *sample.completed);
      }
    }
  }
  if (!arrival || !completed) {
    return;
  }
  for (const auto& sample : samples) {
    const auto domain = domainOf(sample.rank);
    if (domain && *domain != kReference && sample.completed) {
      offsets_[*domain].observe(*arrival - *sample.completed, *completed - sample.arrival);
    }
  }
}

std::optional<std::vector<RankArrival>> Clocks::compare(const std::vector<RankSample>& samples) const {
  std::vector<RankArrival> arrivals;
  bool oneClock = true;
  for (const auto& sample : samples) {
    const auto domain = domainOf(sample.rank);
    if (!domain) {
      return std::nullopt;
    }
    oneClock = oneClock && domain == domainOf(samples.front().rank);
    arrivals.push_back({sample.rank, sample.arrival, Duration{0}});
  }
  if (oneClock) {
    return arrivals;
  }
  for (auto& arrival : arrivals) {
    const auto domain = *domainOf(arrival.rank);
    if (domain == kReference) {
      continue;
    }
    const auto offset = offsets_.find(domain);
    const auto interval = offset == offsets_.end() ? std::nullopt : offset->second.interval();
    if (!interval) {
      return std::nullopt;
    }
    arrival.time += interval->middle();
    arrival.bound = interval->bound();
  }
  return arrivals;
}

}  // namespace straggler
