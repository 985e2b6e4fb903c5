// Clocks: which ranks share a clock, and how the others' clocks relate to the reference, the root's.
//
// Ranks on one host read the same monotonic clock: their arrivals compare directly, and the bound is the stamp's own.
// Ranks on another clock are brought to the reference by the certified interval of ClockOffset, as it is at the moment of
// the arrival; until both its sides are known, their arrivals are not compared at all.
//
// The traffic leaves one side loose where a rank never arrives last (or always does): nothing passes from it to the others
// shortly before they go on. Such clocks are loose(), and the root asks them over the store (session/clock_beat.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/detect/arrival_pattern.h"
#include "backend/detect/clock_drift.h"
#include "backend/detect/clock_offset.h"

namespace straggler {

// One rank's share in one operation, on its own clock.
struct RankSample {
  int rank = 0;
  Instant arrival{};
  std::optional<Instant> completed;
  bool polled = false;  // the arrival may be late
};

// What is known of a clock other than the reference.
struct ClockRelation {
  std::vector<int> ranks;                // that read it, ascending
  Instant at{};                          // its reading at which `offset` holds
  std::optional<OffsetInterval> offset;  // of the reference less this clock
  std::optional<DriftInterval> drift;
  std::uint64_t leaps = 0;
};

class Clocks {
 public:
  // The root's clock is the reference.
  explicit Clocks(int root = 0) : root_(root) {}

  // An empty domain is shared with nobody.
  void setDomain(int rank, const std::string& domain);

  // Any operation: how far each clock is by now. The longer nothing bounded one, the less is known of it.
  void hear(const std::vector<RankSample>& samples);
  // Learns from an operation that completesTogether(), if no proxy arrived in it for a rank. Arrivals that may be late are
  // left out.
  void observe(const std::vector<RankSample>& samples);
  // Learns from events on the root's clock and that of `rank`.
  void observe(int rank, const Crossing& crossing);

  // The samples' arrivals on one clock; nothing where they cannot be compared.
  std::optional<std::vector<RankArrival>> compare(const std::vector<RankSample>& samples) const;

  // How many different clocks the ranks known so far have.
  std::size_t count() const { return domains_.size(); }
  // One entry for each of them but the reference.
  std::vector<ClockRelation> relations() const;
  // One rank of each clock that is not known to within kLoose, the least known first, at most `limit`.
  std::vector<int> loose(std::size_t limit) const;

  static constexpr Duration kLoose = std::chrono::microseconds(500);

 private:
  using Domain = std::size_t;
  struct Relation {
    ClockOffset offset;
    ClockDrift drift;
    Instant heard = Instant::min();  // the latest reading that was told

    void observe(const Crossing& crossing);
  };

  std::optional<Domain> domainOf(int rank) const;

  int root_;
  std::optional<Domain> reference_;  // the root's, once it is known
  std::map<std::string, Domain> domains_;
  std::map<int, Domain> domainOfRank_;
  std::map<Domain, Relation> relations_;
};

}  // namespace straggler
