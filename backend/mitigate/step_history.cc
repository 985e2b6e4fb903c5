#include "backend/mitigate/step_history.h"

#include <algorithm>
#include <utility>

namespace straggler {

void StepHistory::arrived(const SlotOperation& operation, const std::map<BucketId, std::uint64_t>& unread,
                          std::uint64_t staleness) {
  if (operation.bucket != BucketId{0}) {
    if (!operation.bucket && operation.kind != SlotOperation::Kind::kBroadcast) {
      exact_ = operation;
    }
    return;
  }
  const auto behind = unread.find(0);
  steps_.push_back({std::exchange(exact_, std::nullopt), behind != unread.end() && behind->second >= staleness});
  if (steps_.size() > kSteps) {
    steps_.pop_front();
  }
  const auto atBound = static_cast<std::size_t>(
      std::count_if(steps_.begin(), steps_.end(), [](const Step& step) { return step.atBound; }));
  if (leftAlone_ > 0) {
    --leftAlone_;
  } else if (4 * atBound >= 3 * kSteps) {
    leftAlone_ = nextTime_;
    nextTime_ = std::min(2 * nextTime_, kLeftAloneAtMost);
  }
}

std::optional<SlotOperation> StepHistory::exactInEveryStep() const {
  const auto exact = static_cast<std::size_t>(
      std::count_if(steps_.begin(), steps_.end(), [](const Step& step) { return step.exact.has_value(); }));
  if (steps_.size() < kMinimum || 2 * exact <= steps_.size()) {
    return std::nullopt;
  }
  const auto last =
      std::find_if(steps_.rbegin(), steps_.rend(), [](const Step& step) { return step.exact.has_value(); });
  return last->exact;
}

}  // namespace straggler
