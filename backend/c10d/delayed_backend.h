// DelayedBackend: holds a rank up before its collectives, for trials. It stands outside of the wrapper that observes, and
// shares nothing with it: to the observer its rank is simply late.
//
// Its rules count this backend's collectives, from 0. Point to point calls are not delayed.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "backend/c10d/delay_rules.h"
#include "backend/c10d/forwarding_backend.h"

namespace straggler {

class DelayedBackend final : public ForwardingBackend {
 public:
  // Throws std::invalid_argument as parseDelayRules does.
  DelayedBackend(BackendPtr inner, int globalRank, const std::string& rules);

 protected:
  WorkPtr call(const Call& call, c10::function_ref<WorkPtr()> issue) override;
  BackendPtr wrap(BackendPtr made, const std::vector<int>& ranks) override;

 private:
  int globalRank_;
  std::string text_;
  std::vector<DelayRule> rules_;
  std::mt19937_64 random_;
  std::int64_t collectives_ = 0;
};

}  // namespace straggler
