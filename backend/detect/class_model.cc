#include "backend/detect/class_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "backend/detect/reasons.h"
#include "backend/detect/statistics.h"

namespace straggler {

ClassModel::ClassModel(PeerClass ranks, std::size_t jobRanks, int stepsPerWindow, const DetectorOptions& options)
    : ranks_(std::move(ranks)),
      jobRanks_(jobRanks),
      stepsPerWindow_(static_cast<std::size_t>(stepsPerWindow)),
      options_(options),
      windows_(ranks_.size(), stepsPerWindow) {
  detector_.verdict.rule = toString(options_.rule);
  detector_.verdict.reason = "no window of steps was compared on all ranks";
}

std::vector<Verdict> ClassModel::judge(const WindowRow& row, std::vector<ArrivalCounts> arrivals,
                                       const std::vector<Level>& others) {
  WindowComparison window = straggler::compare(row);
  // What is left of a window after warm-up, or at the end, has to be enough for a median.
  if (2 * window.steps < stepsPerWindow_) {
    return {};
  }
  const auto past = past_.medianMs();
  const double nowMs = window.ranks.front().selfMs;
  firstStep_ = window.firstStep;
  lastStep_ = window.lastStep();
  setLevel(window);
  DetectorInput input{std::move(window), ranks_, std::move(arrivals), jobRanks_};
  if (alone()) {
    if (!past) {
      past_.add(nowMs);
      detector_.verdict.reason = tooShortPastReason(ranks_.front(), past_.size());
      return {};
    }
    input.ownPastMs = past;
    input.window = compareWithPast(row, *past, commonMs(*past, others));
  }
  auto [state, events] = decide(std::move(detector_), input, options_);
  detector_ = std::move(state);
  if (alone() && detector_.suspicions.front().test.score == 0) {
    past_.add(nowMs);
  }
  const bool explained = detector_.verdict.kind == VerdictKind::kStraggler || detector_.pace.slower();
  transfersChanged_ = transfers_.close(input.window, explained, std::log(options_.falseAlarmWindows));
  return events;
}

void ClassModel::setLevel(const WindowComparison& window) {
  load_.stepMs = window.stepMs;
  if (jobRanks_ == ranks_.size()) {
    return;  // there are no others to whom it would matter
  }
  double nowMs = std::numeric_limits<double>::max();
  std::vector<double> means;
  for (const auto& rank : window.ranks) {
    if (rank.told) {
      nowMs = std::min(nowMs, rank.selfMs);
      means.push_back(rank.meanSelfMs);
    }
  }
  load_.selfMs = quantile(std::move(means), 0.5).value_or(0);
  if (const auto past = past_.medianMs()) {
    level_ = Level{nowMs, *past};
  }
  if (!alone()) {
    past_.add(nowMs);
  }
}

}  // namespace straggler
