// StepHistory: what the last steps of a rank say about whether filling slots is worth it.
//
// - A lead ends at the next operation that nobody can be spared in. Where one comes in every step (a loss that is reduced, a
//   norm), the others wait there anyway: filling gains nothing and costs staleness.
// - A rank that is as far behind as it may be, step after step, is persistent: slow, not late. It still has to do every step,
//   so no scheme that keeps all steps ends sooner than it does. Its slots are left to it for a while; each time that this is
//   found again, for twice as long.
//
// A step is what lies between two arrivals at the first bucket.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "backend/mitigate/slot.h"

namespace straggler {

class StepHistory {
 public:
  static constexpr std::size_t kSteps = 32;        // that are looked at
  static constexpr std::size_t kMinimum = 8;       // below, nothing is said of the program
  static constexpr std::uint64_t kLeftAlone = 64;  // steps, the first time
  static constexpr std::uint64_t kLeftAloneAtMost = 1U << 14U;

  // The main thread arrives. `unread`: slots of each bucket that were filled for it and that it has not reached.
  void arrived(const SlotOperation& operation, const std::map<BucketId, std::uint64_t>& unread,
               std::uint64_t staleness);

  // The operation, if more than half of the steps have one.
  std::optional<SlotOperation> exactInEveryStep() const;
  bool isPersistent() const { return leftAlone_ > 0; }

 private:
  struct Step {
    std::optional<SlotOperation> exact;
    bool atBound = false;
  };

  std::deque<Step> steps_;
  std::optional<SlotOperation> exact_;  // of the step that is running
  std::uint64_t leftAlone_ = 0;         // steps to come
  std::uint64_t nextTime_ = kLeftAlone;
};

}  // namespace straggler
