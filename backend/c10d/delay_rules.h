// DelayRule: whom a DelayedBackend holds up, when and for how long. No torch here, so that a fuzzer can have it alone.
//
// Rules come as text, one a line, already checked by `straggler run --inject`:
//
//   rank=<n, or -1 for all> ms=<number> probability=<0..1> from=<n> to=<n, or -1> every=<n> seed=<n>
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace straggler {

inline constexpr double kMaxDelayMs = 3.6e6;  // an hour

struct DelayRule {
  int rank = -1;  // global
  double ms = 0;
  double probability = 1;
  std::int64_t from = 0;
  std::int64_t to = -1;
  std::int64_t every = 1;
  std::uint64_t seed = 0;

  // Whether the rule is about this collective, of those that the group has had before; chance and rank aside.
  bool isDue(std::int64_t collective) const {
    return collective >= from && (to < 0 || collective <= to) && (collective - from) % every == 0;
  }
  bool operator==(const DelayRule&) const = default;
};

// Throws std::invalid_argument on text that is not of the grammar above.
std::vector<DelayRule> parseDelayRules(const std::string& rules);

}  // namespace straggler
