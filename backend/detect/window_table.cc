#include "backend/detect/window_table.h"

#include <algorithm>
#include <utility>

namespace straggler {
namespace {

// Some 65 MB for the largest jobs, with 10 steps a window.
constexpr std::size_t kMaxWaitingShares = std::size_t{1} << 18;  // of all ranks and rows
constexpr std::size_t kMinWaitingRows = 16;
constexpr std::size_t kMaxWaitingRows = 4096;
constexpr std::int64_t kMaxPatience = 2048;

}  // namespace

void WindowTable::sentAtOnce(std::int64_t windows) {
  patience_ = std::clamp(2 * windows + kPatience, patience_, kMaxPatience);
}

std::vector<WindowRow> WindowTable::add(std::size_t position, std::int64_t firstStep, RankWindow window) {
  const std::int64_t index = firstStep / stepsPerWindow_;
  lastTold_[position] = std::max(lastTold_[position], index);
  if (index < nextIndex_) {
    ++late_;
    return {};
  }
  const auto [place, isNew] = waiting_.try_emplace(index);
  WindowRow& row = place->second;
  if (isNew) {
    row.firstStep = firstStep;
    row.ranks.resize(lastTold_.size());
  }
  if (row.ranks[position] || row.firstStep != firstStep) {
    return {};
  }
  row.ranks[position] = std::move(window);
  ++row.told;

  std::vector<WindowRow> ready;
  if (row.complete()) {
    while (waiting_.begin()->first < index) {
      passOver();
    }
    nextIndex_ = index + 1;
    ready.push_back(std::move(waiting_.extract(index).mapped()));
  } else {
    handOverBefore(index - patience_, ready);
  }
  if (waiting_.size() > std::clamp(kMaxWaitingShares / lastTold_.size(), kMinWaitingRows, kMaxWaitingRows)) {
    passOver();
  }
  return ready;
}

void WindowTable::passOver() {
  nextIndex_ = waiting_.begin()->first + 1;
  waiting_.erase(waiting_.begin());
  ++passedOver_;
}

// Rows that wait for ranks which have told nothing as late as that. Where a rank did, later, it left the window out.
void WindowTable::handOverBefore(std::int64_t index, std::vector<WindowRow>& ready) {
  while (!waiting_.empty() && waiting_.begin()->first < index) {
    const auto& [first, row] = *waiting_.begin();
    bool leftOut = false;
    for (std::size_t i = 0; i < lastTold_.size(); ++i) {
      leftOut = leftOut || (!row.ranks[i] && lastTold_[i] > first);
    }
    if (leftOut) {
      passOver();
      continue;
    }
    nextIndex_ = first + 1;
    ready.push_back(std::move(waiting_.extract(waiting_.begin()).mapped()));
  }
}

}  // namespace straggler
