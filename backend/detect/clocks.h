// Clocks: which ranks share a clock, and how the others' clocks relate to the reference, that of the first rank known.
//
// Ranks on one host read the same monotonic clock: their arrivals compare directly, and the bound is the stamp's own.
// Ranks on another clock are brought to the reference by the certified interval of ClockOffset; until both its sides are
// known, their arrivals are not compared at all.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/detect/arrival_pattern.h"
#include "backend/detect/clock_offset.h"

namespace straggler {

// One rank's share in one operation, on its own clock.
struct RankSample {
  int rank = 0;
  Instant arrival{};
  std::optional<Instant> completed;
};

class Clocks {
 public:
  // An empty domain is shared with nobody.
  void setDomain(int rank, const std::string& domain);

  // Learns from an operation that completesTogether().
  void observe(const std::vector<RankSample>& samples);

  // The samples' arrivals on one clock; nothing where they cannot be compared.
  std::optional<std::vector<RankArrival>> compare(const std::vector<RankSample>& samples) const;

  // How many different clocks the ranks known so far have.
  std::size_t count() const { return domains_.size(); }

 private:
  using Domain = std::size_t;
  static constexpr Domain kReference = 0;

  std::optional<Domain> domainOf(int rank) const;

  std::map<std::string, Domain> domains_;
  std::map<int, Domain> domainOfRank_;
  std::map<Domain, ClockOffset> offsets_;
};

}  // namespace straggler
