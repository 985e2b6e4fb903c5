#include "backend/detect/clocks.h"

#include <algorithm>
#include <utility>

namespace straggler {

void Clocks::Relation::observe(const Crossing& crossing) {
  const auto leaps = offset.leaps();
  offset.observe(crossing);
  const Instant latest = std::max(crossing.otherBefore, crossing.otherAfter);
  if (offset.leaps() != leaps) {
    drift.forget();
    heard = latest;
  }
  heard = std::max(heard, latest);
  if (const auto newest = offset.newest()) {
    drift.add(*newest, *offset.interval(*newest));
  }
}

void Clocks::setDomain(int rank, const std::string& domain) {
  const auto name = domain.empty() ? "rank " + std::to_string(rank) : domain;
  const Domain number = domains_.try_emplace(name, domains_.size()).first->second;
  if (rank == root_ && reference_ != number) {
    reference_ = number;
    relations_.clear();
  }
  domainOfRank_[rank] = number;
}

std::optional<Clocks::Domain> Clocks::domainOf(int rank) const {
  const auto found = domainOfRank_.find(rank);
  return found == domainOfRank_.end() ? std::nullopt : std::optional(found->second);
}

void Clocks::hear(const std::vector<RankSample>& samples) {
  if (domains_.size() < 2) {
    return;
  }
  for (const auto& sample : samples) {
    const auto domain = domainOf(sample.rank);
    if (const auto relation = relations_.find(domain.value_or(domains_.size())); relation != relations_.end()) {
      relation->second.heard = std::max(relation->second.heard, sample.arrival);
    }
  }
}

void Clocks::observe(const std::vector<RankSample>& samples) {
  if (domains_.size() < 2 || !reference_) {
    return;
  }
  // The tightest that the reference ranks give: the latest arrival and the earliest completion.
  std::optional<Instant> arrival;
  std::optional<Instant> completed;
  for (const auto& sample : samples) {
    if (domainOf(sample.rank) == reference_) {
      if (!sample.polled) {
        arrival = std::max(arrival.value_or(sample.arrival), sample.arrival);
      }
      if (sample.completed) {
        completed = std::min(completed.value_or(*sample.completed), *sample.completed);
      }
    }
  }
  if (!arrival || !completed) {
    return;
  }
  for (const auto& sample : samples) {
    if (sample.completed && !sample.polled) {
      observe(sample.rank, {*arrival, *sample.completed, sample.arrival, *completed});
    }
  }
}

void Clocks::observe(int rank, const Crossing& crossing) {
  const auto domain = domainOf(rank);
  if (domain && reference_ && domain != reference_) {
    relations_[*domain].observe(crossing);
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
    arrivals.push_back({sample.rank, sample.arrival, Duration{0}, *domain});
  }
  if (oneClock) {
    return arrivals;
  }
  for (auto& arrival : arrivals) {
    if (arrival.clock == reference_) {
      continue;
    }
    const auto relation = relations_.find(arrival.clock);
    const auto interval = relation == relations_.end() ? std::nullopt : relation->second.offset.interval(arrival.time);
    if (!interval) {
      return std::nullopt;
    }
    arrival.time += interval->middle();
    arrival.bound = interval->bound();
  }
  return arrivals;
}

std::vector<ClockRelation> Clocks::relations() const {
  std::map<Domain, ClockRelation> told;
  for (const auto& [rank, domain] : domainOfRank_) {
    if (reference_ && domain != reference_) {
      told[domain].ranks.push_back(rank);
    }
  }
  std::vector<ClockRelation> result;
  for (auto& [domain, row] : told) {
    if (const auto known = relations_.find(domain); known != relations_.end()) {
      row.at = known->second.heard;
      row.offset = known->second.offset.interval(row.at);
      row.drift = known->second.drift.interval();
      row.leaps = known->second.offset.leaps();
    }
    result.push_back(std::move(row));
  }
  return result;
}

std::vector<int> Clocks::loose(std::size_t limit) const {
  std::vector<std::pair<Duration, int>> found;
  for (const auto& clock : relations()) {
    const Duration bound = clock.offset ? clock.offset->bound() : Duration::max();
    if (bound > kLoose) {
      found.emplace_back(bound, clock.ranks.front());
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<int> ranks;
  for (std::size_t i = 0; i < std::min(limit, found.size()); ++i) {
    ranks.push_back(found[i].second);
  }
  return ranks;
}

}  // namespace straggler
