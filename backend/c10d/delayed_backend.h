// DelayedBackend: holds a rank up before its collectives, for trials. It stands outside of the wrapper that observes, and
// shares nothing with it: to the observer its rank is simply late.
//
// Rules come as text, one a line, already checked by `straggler run --inject`:
//
//   rank=<n, or -1 for all> ms=<number> probability=<0..1> from=<n> to=<n, or -1> every=<n> seed=<n>
//
// They count this backend's collectives, from 0. Point to point calls are not delayed.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "backend/c10d/forwarding_backend.h"

namespace straggler {

class DelayedBackend final : public ForwardingBackend {
 public:
  struct Rule {
    int rank = -1;  // global
    double ms = 0;
    double probability = 1;
    std::int64_t from = 0;
    std::int64_t to = -1;
    std::int64_t every = 1;
    std::uint64_t seed = 0;
  };

  // Throws std::invalid_argument on text that is not of the grammar above.
  DelayedBackend(BackendPtr inner, int globalRank, const std::string& rules);

  static std::vector<Rule> parse(const std::string& rules);

 protected:
  WorkPtr call(const Call& call, c10::function_ref<WorkPtr()> issue) override;
  BackendPtr wrap(BackendPtr made, const std::vector<int>& ranks) override;

 private:
  int globalRank_;
  std::string text_;
  std::vector<Rule> rules_;
  std::mt19937_64 random_;
  std::int64_t collectives_ = 0;
};

}  // namespace straggler
