#include "backend/mitigate/step_history.h"

#include <algorithm>
#include <utility>

namespace straggler {

void StepHistory::step(bool atBound) {
  steps_.push_back({std::exchange(exact_, {}), std::exchange(rooted_, {}), atBound});
  if (steps_.size() > kSteps) {
    steps_.pop_front();
  }
  const auto bound = static_cast<std::size_t>(
      std::count_if(steps_.begin(), steps_.end(), [](const Step& step) { return step.atBound; }));
  if (leftAlone_ > 0) {
    --leftAlone_;
  } else if (4 * bound >= 3 * kSteps) {
    leftAlone_ = nextTime_;
    nextTime_ = std::min(2 * nextTime_, kLeftAloneAtMost);
  }
}

std::optional<std::string> StepHistory::inEveryStep(std::string Step::*name) const {
  const auto has = [name](const Step& step) { return !(step.*name).empty(); };
  const auto count = static_cast<std::size_t>(std::count_if(steps_.begin(), steps_.end(), has));
  if (steps_.size() < kMinimum || 2 * count <= steps_.size()) {
    return std::nullopt;
  }
  return (*std::find_if(steps_.rbegin(), steps_.rend(), has)).*name;
}

}  // namespace straggler
