#include "backend/c10d/delayed_backend.h"

#include <chrono>
#include <thread>
#include <utility>

#include "backend/c10d/blocking.h"

namespace straggler {

DelayedBackend::DelayedBackend(BackendPtr inner, int globalRank, const std::string& rules)
    : ForwardingBackend(std::move(inner)), globalRank_(globalRank), text_(rules), rules_(parseDelayRules(rules)) {
  random_.seed((rules_.empty() ? 0 : rules_.front().seed) * 1000003 + static_cast<std::uint64_t>(globalRank));
}

ForwardingBackend::WorkPtr DelayedBackend::call(const Call& call, c10::function_ref<WorkPtr()> issue) {
  if (isNumbered(call.kind)) {
    double ms = 0;
    for (const auto& rule : rules_) {
      const bool drawn = rule.probability >= 1 || std::uniform_real_distribution<>()(random_) < rule.probability;
      if (rule.isDue(collectives_) && drawn && (rule.rank < 0 || rule.rank == globalRank_)) {
        ms += rule.ms;
      }
    }
    ++collectives_;
    if (ms > 0) {
      runBlocking([ms] { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms)); });
    }
  }
  return issue();
}

ForwardingBackend::BackendPtr DelayedBackend::wrap(BackendPtr made, const std::vector<int>& /*ranks*/) {
  return c10::make_intrusive<DelayedBackend>(std::move(made), globalRank_, text_);
}

}  // namespace straggler
