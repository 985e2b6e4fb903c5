#include "backend/detect/transfers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "backend/detect/statistics.h"

namespace straggler {
namespace {

constexpr double kAbsoluteGateMs = 1;
constexpr double kRelativeGate = 0.1;
constexpr double kNoiseGate = 3;
constexpr double kEnds = 2;           // of a link, each with a thread
constexpr std::size_t kMinNoise = 5;  // windows

// Mean time that a step leaves the rank that waits least. Nothing where a rank did not tell.
std::optional<double> smallestWait(const WindowComparison& window) {
  double smallest = std::numeric_limits<double>::max();
  for (const auto& rank : window.ranks) {
    if (!rank.told) {
      return std::nullopt;
    }
    smallest = std::min(smallest, rank.meanWaitMs);
  }
  return smallest;
}

}  // namespace

void Transfers::add(const OpKey& key, std::uint8_t sizeClass, double transferMs, std::uint32_t sampling) {
  const Line line{key.group, key.kind, sizeClass};
  if (lines_.size() >= kMaxLines && !lines_.contains(line)) {
    return;
  }
  LineState& state = lines_[line];
  state.operations += sampling;
  if (state.samplesMs.size() < kMaxSamples) {
    state.samplesMs.push_back(transferMs);
  }
}

// What each group's transfers cost a step more than they did. Takes the samples of the window.
std::map<GroupId, double> Transfers::excessByGroup() {
  std::map<GroupId, double> excess;
  for (auto& [line, state] : lines_) {
    if (state.samplesMs.size() >= kMinSamples) {
      state.nowMs = quantile(std::exchange(state.samplesMs, {}), 0.5);
    }
    const auto past = state.pastMs.median(kMinPast);
    if (past && state.nowMs) {
      excess[line.group] += (*state.nowMs - *past) * state.operations / steps_;
    }
  }
  return excess;
}

// What the lack of processors may add. Never negative: where there is less of it, transfers are slow for another reason.
double Transfers::processorsMs(const std::optional<double>& runDelayMs) const {
  const auto past = pastRunDelay_.median(kMinPast);
  return past && runDelayMs ? kEnds * std::max(0.0, *runDelayMs - *past) : 0;
}

void Transfers::learn(double waitMs, const std::optional<double>& runDelayMs) {
  pastWait_.add(waitMs);
  pastRunDelay_.add(runDelayMs);
  for (auto& [line, state] : lines_) {
    state.pastMs.add(state.nowMs);
  }
}

// From window to window, as of the ranks: the mean difference of two normal values is 2 / sqrt(pi) times their deviation.
double Transfers::noise(double excessMs) {
  if (const auto last = std::exchange(lastExcessMs_, excessMs)) {
    differencesMs_.add(std::sqrt(std::numbers::pi) / 2 * std::abs(excessMs - *last));
  }
  return differencesMs_.median(kMinNoise).value_or(0);
}

// The past begins anew if it was forgotten because the transfers settled.
bool Transfers::forget(bool settled) {
  const bool was = test_.on;
  test_ = {};
  windows_ = 0;
  toldMs_ = 0;
  settled_ = settled;
  if (settled) {
    pastWait_.clear();
    pastRunDelay_.clear();
    for (auto& [line, state] : lines_) {
      state.pastMs.clear();
    }
  }
  return was;
}

bool Transfers::close(const WindowComparison& window, bool hold, double limit) {
  const std::int64_t before = std::exchange(lastStep_, window.lastStep());
  if (before < 0) {  // how many steps the operations so far were of is not known
    for (auto& [line, state] : lines_) {
      state.operations = 0;
    }
    return false;
  }
  steps_ += static_cast<double>(lastStep_ - before);
  const auto waitMs = smallestWait(window);
  if (!waitMs || steps_ <= 0) {
    return false;
  }
  auto byGroup = excessByGroup();
  if (hold) {
    return forget(false);
  }
  const auto pastWait = pastWait_.median(kMinPast);
  if (!pastWait) {
    learn(*waitMs, window.runDelayMs);
    return false;
  }
  double excess = -std::numeric_limits<double>::max();
  for (const auto& [group, groupMs] : byGroup) {
    excess = std::max(excess, groupMs);
  }
  byGroup_ = std::move(byGroup);
  excess = byGroup_.empty() ? 0 : std::min(excess, *waitMs - *pastWait) - processorsMs(window.runDelayMs);
  if (test_.score == 0) {
    sinceStep_ = window.firstStep;
    excess_.clear();
  }
  const double noiseMs = noise(excess);
  const double gateMs = std::max({kAbsoluteGateMs, kRelativeGate * window.stepMs, kNoiseGate * noiseMs});
  const auto change = test_.add(excess, gateMs, noiseMs, limit, toldMs_);
  excess_.add(excess);
  if (test_.score == 0) {
    learn(*waitMs, window.runDelayMs);
  }
  windows_ = test_.on ? windows_ + 1 : 0;
  if (windows_ >= kSettled || change == Cusum::Change::kOff) {
    return forget(windows_ >= kSettled);
  }
  if (change == Cusum::Change::kOn) {
    test_.on = true;
    toldMs_ = excessMs();
    return true;
  }
  return false;
}

// Those that cost at least half of what the worst does.
std::vector<GroupId> Transfers::slowGroups() const {
  double most = 0;
  for (const auto& [group, excess] : byGroup_) {
    most = std::max(most, excess);
  }
  std::vector<GroupId> slow;
  for (const auto& [group, excess] : byGroup_) {
    if (excess > 0 && 2 * excess >= most) {
      slow.push_back(group);
    }
  }
  std::stable_sort(slow.begin(), slow.end(), [this](GroupId a, GroupId b) { return byGroup_.at(a) > byGroup_.at(b); });
  return slow;
}

}  // namespace straggler
