#include "backend/detect/step_table.h"

#include <algorithm>

namespace straggler {
namespace {

// Some 30 MB for the largest jobs, and some 5 MB for small ones, in which each step costs most by itself.
constexpr std::size_t kMaxWaitingTimes = std::size_t{1} << 21;  // of all ranks and steps
constexpr std::size_t kMinWaitingSteps = 64;
constexpr std::size_t kMaxWaitingSteps = std::size_t{1} << 14;

}  // namespace

std::optional<StepOfAllRanks> StepTable::add(std::size_t position, std::int64_t step, double selfMs,
                                             double durationMs) {
  const auto [place, isNew] = waiting_.try_emplace(step);
  Row& row = place->second;
  if (isNew) {
    row = {{step, std::vector<double>(ranks_), std::vector<double>(ranks_)}, std::vector<bool>(ranks_), ranks_};
  }
  if (row.told[position]) {
    return std::nullopt;
  }
  row.told[position] = true;
  row.step.selfMs[position] = selfMs;
  row.step.durationMs[position] = durationMs;
  if (--row.missing == 0) {
    auto complete = std::move(row.step);
    waiting_.erase(place);
    return complete;
  }
  if (waiting_.size() > std::clamp(kMaxWaitingTimes / ranks_, kMinWaitingSteps, kMaxWaitingSteps)) {
    waiting_.erase(waiting_.begin());
    ++givenUp_;
  }
  return std::nullopt;
}

}  // namespace straggler
