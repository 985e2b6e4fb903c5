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

JobModel::JobModel(std::vector<int> ranks, int stepsPerBlock)
    : ranks_(modelsOf(ranks)),
      steps_(ranks.size()),
      stepsPerBlock_(static_cast<std::size_t>(stepsPerBlock)),
      block_(ranks.size()) {}

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
  const auto position = static_cast<std::size_t>(&rank - ranks_.data());
  const double steps = std::max<double>(1, static_cast<double>(window.selfUs.size()));
  const double durationMs = static_cast<double>(window.durationUs) / 1e3 / steps;
  for (std::size_t i = 0; i < window.selfUs.size(); ++i) {
    const std::int64_t step = window.firstStep + static_cast<std::int64_t>(i);
    const double selfMs = window.selfUs[i] / 1e3;
    if (step < kWarmUpSteps) {
      continue;
    }
    rank.selfMs.add(selfMs);
    rank.durationMs.add(durationMs);
    if (const auto complete = steps_.add(position, step, selfMs, durationMs)) {
      compare(*complete);
    }
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

void JobModel::compare(const StepOfAllRanks& step) {
  const auto peers = mediansOfOthers(step.selfMs);
  ++stepsCompared_;
  comparedMs_ += step.durationMs.front();
  if (peers.empty()) {
    return;
  }
  // Without its slowest rank, a step would have been shorter by what that rank is behind the second slowest.
  const auto slowest = std::max_element(step.selfMs.begin(), step.selfMs.end());
  double second = 0;
  for (auto value = step.selfMs.begin(); value != step.selfMs.end(); ++value) {
    second = value == slowest ? second : std::max(second, *value);
  }
  ranks_[static_cast<std::size_t>(slowest - step.selfMs.begin())].lostMs += *slowest - second;

  blockFirst_ = blockFirst_.value_or(step.step);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    block_[i].push_back(step.selfMs[i] - peers[i]);
  }
  if (block_.front().size() == stepsPerBlock_) {
    blockSteps_.add(static_cast<double>(*std::exchange(blockFirst_, std::nullopt)));
    for (std::size_t i = 0; i < block_.size(); ++i) {
      ranks_[i].excessMs.add(*quantile(std::exchange(block_[i], {}), 0.5));
    }
  }
}

void JobModel::compare(const OpKey& key, const std::vector<RankSample>& samples) {
  if (completesTogether(key.kind)) {
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
      ranks_[*position].timesLast += rank == pattern.lastArriver ? 1 : 0;
    }
  }
}

Verdict JobModel::verdict() const {
  DetectorInput input;
  std::vector<double> lengths;
  for (const auto& rank : ranks_) {
    input.ranks.push_back({rank.rank, {rank.excessMs.values().begin(), rank.excessMs.values().end()}});
    if (const auto median = rank.durationMs.quantile(0.5)) {
      lengths.push_back(*median);
    }
  }
  input.stepMs = quantile(lengths, 0.5).value_or(0);
  input.blockSteps = {blockSteps_.values().begin(), blockSteps_.values().end()};
  input.stepsPerBlock = static_cast<std::int64_t>(stepsPerBlock_);
  return detect(input);
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
