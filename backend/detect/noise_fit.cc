#include "backend/detect/noise_fit.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "backend/detect/comparison.h"
#include "backend/detect/statistics.h"

namespace straggler {
namespace {

constexpr double kPause = 6;              // standard deviations of a step
constexpr double kMedianFactor = 1.2533;  // standard error of a median over that of a mean
constexpr int kTries = 6;
constexpr std::int64_t kTriedRanks = 64;
constexpr std::int64_t kTriedShares = 4000;  // windows of single ranks

double median(std::vector<double> values) { return quantile(std::move(values), 0.5).value_or(0); }

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviationOf(const std::vector<double>& values) {
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) {
    sum += (value - middle) * (value - middle);
  }
  return values.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(values.size() - 1));
}

// All windows of one rank.
struct RankPast {
  std::vector<double> selfMs;
  std::vector<double> excessMs;
  std::vector<double> stepExcessMs;
};

void measureWindows(const std::vector<RankPast>& ranks, RunNoise& noise) {
  std::vector<double> differences;
  std::vector<double> distances;
  std::vector<double> selfMs;
  for (const auto& rank : ranks) {
    const double middle = median(rank.excessMs);
    for (std::size_t i = 0; i < rank.excessMs.size(); ++i) {
      distances.push_back(std::abs(rank.excessMs[i] - middle));
      if (i > 0) {
        differences.push_back(std::abs(rank.excessMs[i] - rank.excessMs[i - 1]));
      }
    }
    selfMs.push_back(median(rank.selfMs));
  }
  noise.betweenMs = std::sqrt(std::numbers::pi) / 2 * mean(differences);
  noise.totalMs = std::sqrt(std::numbers::pi / 2) * mean(distances);
  noise.spreadMs = deviationOf(selfMs);
  noise.baseMs = median(selfMs);
}

void measurePauses(const std::vector<RankPast>& ranks, std::size_t steps, RunNoise& noise) {
  const double stepMs = noise.withinMs * std::sqrt(static_cast<double>(steps)) / kMedianFactor;
  noise.pauseMs = kPause * stepMs;
  std::size_t pauses = 0;
  std::size_t all = 0;
  double logs = 0;
  for (const auto& rank : ranks) {
    const double middle = median(rank.stepExcessMs);
    all += rank.stepExcessMs.size();
    for (const double excess : rank.stepExcessMs) {
      if (noise.pauseMs > 0 && excess - middle > noise.pauseMs) {
        ++pauses;
        logs += std::log((excess - middle) / noise.pauseMs);
      }
    }
  }
  noise.pauseShare = all == 0 ? 0 : static_cast<double>(pauses) / static_cast<double>(all);
  noise.pauseTail = logs > 0 ? std::clamp(static_cast<double>(pauses) / logs, 0.5, 10.0) : 2;
}

RunNoise measureRows(const std::vector<WindowRow>& rows) {
  RunNoise noise;
  noise.windows = rows.size();
  std::vector<RankPast> ranks(rows.front().ranks.size());
  std::vector<double> within;
  std::vector<double> waits;
  std::size_t steps = 0;
  for (const auto& row : rows) {
    const WindowComparison window = compare(row);
    within.push_back(window.noiseMs);
    steps = std::max(steps, window.steps);
    double slowest = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const RankComparison& rank = window.ranks[i];
      ranks[i].selfMs.push_back(rank.selfMs);
      ranks[i].excessMs.push_back(rank.excessMs);
      ranks[i].stepExcessMs.insert(ranks[i].stepExcessMs.end(), rank.stepExcessMs.begin(), rank.stepExcessMs.end());
      slowest = std::max(slowest, rank.selfMs);
    }
    waits.push_back(window.stepMs - slowest);
  }
  noise.withinMs = median(std::move(within));
  noise.transferMs = std::max(0.0, median(std::move(waits)));
  measureWindows(ranks, noise);
  measurePauses(ranks, steps, noise);
  return noise;
}

// A job of as many ranks, without a delay and without what changes slowly, long enough that its figures hardly move with
// the seed.
SyntheticSpec trialOf(const SyntheticSpec& spec) {
  SyntheticSpec trial = spec;
  trial.delay = Delay::kNone;
  trial.rank = 0;
  trial.slowMs = 0;
  trial.ranks = std::min(spec.ranks, kTriedRanks);
  trial.windows = 1 + kTriedShares / trial.ranks;
  return trial;
}

// As if a rank's excess were its own noise, and pauses had no part in it.
SyntheticSpec firstGuess(const RunNoise& noise, std::int64_t ranks, std::int64_t steps) {
  SyntheticSpec spec;
  spec.ranks = ranks;
  spec.windows = static_cast<std::int64_t>(noise.windows);
  spec.steps = steps;
  spec.baseMs = noise.baseMs;
  spec.transferMs = noise.transferMs;
  spec.spreadMs = noise.spreadMs;
  spec.pauseShare = noise.pauseShare;
  spec.pauseMs = std::max(noise.pauseMs, 0.001);
  spec.pauseTail = noise.pauseTail;
  spec.noiseMs = noise.withinMs * std::sqrt(static_cast<double>(steps)) / kMedianFactor;
  return spec;
}

double beyond(double all, double own) { return std::max(0.0, all * all - own * own); }

// The steps' own noise first, with nothing slow; then what the windows vary beyond it, and how much of that is left from
// one window to the next.
void improve(SyntheticSpec& spec, const RunNoise& wanted) {
  SyntheticSpec trial = trialOf(spec);
  const RunNoise still = measure(trial);
  spec.noiseMs *= still.withinMs > 0 ? wanted.withinMs / still.withinMs : 1;
  const double slow = beyond(wanted.totalMs, still.totalMs);
  const double moved = beyond(wanted.betweenMs, still.betweenMs);
  const double kept = slow > 0 ? std::clamp(1 - moved / slow, 0.0, 0.99) : 0;
  spec.slowWindows = kept > 0.001 ? -1 / std::log(kept) : 0.1;
  trial.slowMs = spec.slowMs > 0 ? spec.slowMs : std::sqrt(slow);
  trial.slowWindows = spec.slowWindows;
  const double made = beyond(measure(trial).totalMs, still.totalMs);
  spec.slowMs = made > 0 ? trial.slowMs * std::sqrt(slow / made) : 0;
}

// To a tenth of a microsecond: what is shown is what is meant.
void roundAll(SyntheticSpec& spec) {
  for (double SyntheticSpec::*value :
       {&SyntheticSpec::baseMs, &SyntheticSpec::transferMs, &SyntheticSpec::noiseMs, &SyntheticSpec::spreadMs,
        &SyntheticSpec::slowMs, &SyntheticSpec::slowWindows, &SyntheticSpec::pauseShare, &SyntheticSpec::pauseMs,
        &SyntheticSpec::pauseTail}) {
    spec.*value = std::round(1e4 * spec.*value) / 1e4;
  }
}

}  // namespace

NoiseFit::NoiseFit(std::vector<int> ranks, int stepsPerWindow)
    : ranks_(std::move(ranks)), steps_(stepsPerWindow), table_(ranks_.size(), stepsPerWindow) {}

void NoiseFit::apply(const Frame& frame) {
  const auto place = std::lower_bound(ranks_.begin(), ranks_.end(), frame.rank);
  if (place == ranks_.end() || *place != frame.rank) {
    return;
  }
  for (const auto& message : frame.messages) {
    const auto* window = std::get_if<StepWindow>(&message);
    // The first window holds the job's warm-up, and the last may be short.
    if (window == nullptr || window->firstStep < steps_ || window->selfUs.size() != static_cast<std::size_t>(steps_) ||
        full()) {
      continue;
    }
    RankWindow share;
    share.stepMs = static_cast<double>(window->durationUs) / 1e3 / static_cast<double>(steps_);
    for (const auto us : window->selfUs) {
      share.selfMs.push_back(us / 1e3);
    }
    for (auto& row :
         table_.add(static_cast<std::size_t>(place - ranks_.begin()), window->firstStep, std::move(share))) {
      if (row.complete()) {
        rows_.push_back(std::move(row));
      }
    }
  }
}

std::optional<RunNoise> NoiseFit::measured() const {
  return rows_.size() < kMinWindows ? std::nullopt : std::optional(measureRows(rows_));
}

std::optional<SyntheticSpec> NoiseFit::like() const {
  const auto noise = measured();
  if (!noise || ranks_.size() < 2) {
    return std::nullopt;
  }
  SyntheticSpec spec = firstGuess(*noise, static_cast<std::int64_t>(ranks_.size()), steps_);
  for (int i = 0; i < kTries; ++i) {
    improve(spec, *noise);
  }
  roundAll(spec);
  return spec;
}

RunNoise measure(const SyntheticSpec& spec) {
  SyntheticRun run(spec);
  NoiseFit fit(run.members(), static_cast<int>(spec.steps));
  while (const auto frames = run.next()) {
    for (const auto& frame : *frames) {
      fit.apply(frame);
    }
  }
  return fit.measured().value_or(RunNoise{});
}

}  // namespace straggler
