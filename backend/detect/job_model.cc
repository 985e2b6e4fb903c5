#include "backend/detect/job_model.h"

#include <algorithm>
#include <utility>

#include "backend/detect/arrival_pattern.h"

namespace straggler {
namespace {

constexpr std::size_t kMaxGroups = 4096;

std::vector<RankModel> modelsOf(const std::vector<int>& ranks) {
  std::vector<RankModel> models(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    models[i].rank = ranks[i];
  }
  return models;
}

}  // namespace

JobModel::JobModel(std::vector<int> ranks, int stepsPerWindow, DetectorOptions options)
    : ranks_(modelsOf(ranks)),
      clocks_(ranks.empty() ? 0 : ranks.front()),
      windows_(ranks.size(), stepsPerWindow),
      options_(options),
      stepsPerWindow_(static_cast<std::size_t>(stepsPerWindow)) {
  detector_.verdict.rule = toString(options_.rule);
  detector_.verdict.reason = "no window of steps was compared on all ranks";
}

std::string JobModel::ruleText() const {
  return describe(options_.rule, options_.multiplier, ranks_.size(), options_.absoluteGateMs, options_.relativeGate);
}

std::optional<std::size_t> JobModel::positionOf(int rank) const {
  const auto place = std::lower_bound(ranks_.begin(), ranks_.end(), rank,
                                      [](const RankModel& model, int value) { return model.rank < value; });
  return place == ranks_.end() || place->rank != rank ? std::nullopt
                                                      : std::optional(static_cast<std::size_t>(place - ranks_.begin()));
}

void JobModel::apply(const Frame& frame) {
  const auto position = positionOf(frame.rank);
  if (!position) {
    ++strangers_;
    return;
  }
  windows_.sentAtOnce(std::count_if(frame.messages.begin(), frame.messages.end(),
                                    [](const auto& message) { return std::holds_alternative<StepWindow>(message); }));
  for (const auto& message : frame.messages) {
    std::visit([&](const auto& m) { apply(ranks_[*position], m); }, message);
  }
}

void JobModel::apply(RankModel& rank, const RankHello& hello) {
  rank.hello = hello;
  clocks_.setDomain(rank.rank, hello.clockDomain);
}

void JobModel::apply(RankModel& /*rank*/, const GroupInfo& group) {
  if (groups_.size() < kMaxGroups || groups_.contains(group.id())) {
    groups_[group.id()] = group;
    arrivals_.setGroupSize(group.id(), group.ranks.size());
  }
}

void JobModel::apply(RankModel& rank, const StepWindow& window) {
  foundBy_ = std::max(foundBy_, window.foundBy);
  largestStride_ = std::max(largestStride_, window.stride);
  const auto warmUp =
      static_cast<std::size_t>(std::clamp<std::int64_t>(kWarmUpSteps - window.firstStep, 0, kWarmUpSteps));
  if (window.selfUs.size() <= warmUp) {
    return;
  }
  const auto mean = [steps = static_cast<double>(window.selfUs.size())](std::uint64_t us) {
    return static_cast<double>(us) / 1e3 / steps;
  };
  const auto meanIfKnown = [&mean](const std::optional<std::uint64_t>& us) {
    return us ? std::optional(mean(*us)) : std::nullopt;
  };
  RankWindow share{{},
                   mean(window.durationUs),
                   meanIfKnown(window.inputUs),
                   meanIfKnown(window.cpuUs),
                   meanIfKnown(window.runDelayUs)};
  for (std::size_t step = warmUp; step < window.selfUs.size(); ++step) {
    share.selfMs.push_back(window.selfUs[step] / 1e3);
    rank.selfMs.add(share.selfMs.back());
    rank.durationMs.add(share.stepMs);
  }
  const auto position = static_cast<std::size_t>(&rank - ranks_.data());
  const std::int64_t firstStep = window.firstStep + static_cast<std::int64_t>(warmUp);
  for (const auto& row : windows_.add(position, firstStep, std::move(share))) {
    judge(row);
  }
}

void JobModel::apply(RankModel& rank, const ArrivalSamples& samples) {
  largestSampling_ = std::max(largestSampling_, samples.sampling);
  for (const auto& sample : samples.operations) {
    if (const auto complete = arrivals_.add(rank.rank, sample)) {
      compare(sample.key, *complete);
    }
  }
}

void JobModel::apply(RankModel& rank, const RankCounters& counters) { rank.counters = counters; }

void JobModel::apply(RankModel& rank, const MitigationSummary& summary) {
  rank.mitigation = summary;
  fillsSlots_ = fillsSlots_ || summary.armed || summary.filledByProxy > 0;
}

void JobModel::apply(RankModel& rank, const ClockReading& reading) {
  clocks_.observe(rank.rank, {reading.rootBefore, reading.after, reading.before, reading.rootAfter});
}

void JobModel::judge(const WindowRow& row) {
  if (row.complete()) {
    compareSteps(row);
  }
  DetectorInput input{straggler::compare(row), {}, {}};
  // What is left of a window after warm-up, or at the end, has to be enough for a median.
  if (2 * input.window.steps < stepsPerWindow_) {
    return;
  }
  for (const auto& rank : ranks_) {
    input.ranks.push_back(rank.rank);
    input.arrivals.push_back({rank.lastCertain, rank.timesLast});
  }
  auto [state, events] = decide(std::move(detector_), input, options_);
  detector_ = std::move(state);
  for (auto& event : events) {
    history_.push_back(event);
    events_.push_back(std::move(event));
  }
  while (history_.size() > kMaxHistory) {
    history_.pop_front();
  }
}

// Without its slowest rank, a step would have been shorter by what that rank is behind the second slowest.
void JobModel::compareSteps(const WindowRow& row) {
  std::size_t steps = row.ranks.front()->selfMs.size();
  for (const auto& rank : row.ranks) {
    steps = std::min(steps, rank->selfMs.size());
  }
  stepsCompared_ += steps;
  comparedMs_ += row.ranks.front()->stepMs * static_cast<double>(steps);
  for (std::size_t step = 0; step < steps; ++step) {
    std::size_t slowest = 0;
    double second = 0;
    for (std::size_t i = 1; i < row.ranks.size(); ++i) {
      const double self = row.ranks[i]->selfMs[step];
      const double largest = row.ranks[slowest]->selfMs[step];
      second = std::max(second, std::min(self, largest));
      slowest = self > largest ? i : slowest;
    }
    if (row.ranks.size() > 1) {
      ranks_[slowest].lostMs += row.ranks[slowest]->selfMs[step] - second;
    }
  }
}

void JobModel::compare(const OpKey& key, const std::vector<RankSample>& samples) {
  clocks_.hear(samples);
  if (completesTogether(key.kind) && !fillsSlots_) {
    clocks_.observe(samples);
  }
  const auto arrivals = clocks_.compare(samples);
  if (!arrivals || arrivals->size() < 2 || key.sequence < kWarmUpOperations) {
    return;
  }
  const ArrivalPattern pattern = arrivalPattern(key, *arrivals);
  auto& kind = kinds_.at(static_cast<std::size_t>(key.kind));
  kind.skewMs.add(toMilliseconds(pattern.skew));
  kind.boundMs.add(toMilliseconds(pattern.bound));
  for (const auto& [rank, lateness] : pattern.lateness) {
    if (const auto position = positionOf(rank)) {
      ranks_[*position].latenessMs.add(toMilliseconds(lateness));
      ranks_[*position].lastCertain += pattern.lastIsCertain ? 1 : 0;
      ranks_[*position].timesLast += pattern.lastIsCertain && rank == pattern.lastArriver ? 1 : 0;
    }
  }
}

std::size_t JobModel::ranksHeard() const {
  return static_cast<std::size_t>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.hello.has_value(); }));
}

std::size_t JobModel::ranksFinal() const {
  return static_cast<std::size_t>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.counters.final; }));
}

}  // namespace straggler
