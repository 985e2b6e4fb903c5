#include "backend/detect/comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "backend/detect/statistics.h"

namespace straggler {
namespace {

using Positions = std::vector<std::size_t>;

double median(std::vector<double> values) { return quantile(std::move(values), 0.5).value_or(0); }

// The ranks that told, and the number of steps that all of them have.
std::pair<Positions, std::size_t> tellers(const WindowRow& row) {
  Positions who;
  std::size_t steps = std::numeric_limits<std::size_t>::max();
  for (std::size_t i = 0; i < row.ranks.size(); ++i) {
    if (row.ranks[i]) {
      who.push_back(i);
      steps = std::min(steps, row.ranks[i]->selfMs.size());
    }
  }
  return {who, who.empty() ? 0 : steps};
}

void compareStep(const WindowRow& row, const Positions& who, std::size_t step, WindowComparison& out,
                 std::vector<double>& spreads) {
  std::vector<double> self;
  for (const std::size_t i : who) {
    self.push_back(row.ranks[i]->selfMs[step]);
  }
  const auto peers = mediansOfOthers(self);
  const auto largest = static_cast<std::size_t>(std::max_element(self.begin(), self.end()) - self.begin());
  out.ranks[who[largest]].timesLargest += 1;
  for (std::size_t place = 0; place < peers.size(); ++place) {
    out.ranks[who[place]].stepExcessMs.push_back(self[place] - peers[place]);
  }
  if (!peers.empty()) {
    spreads.push_back(self[largest] - peers[largest]);
  }
}

// The excess of one kind of evidence, for the ranks that have it.
void compareEvidence(const WindowRow& row, const Positions& who, std::optional<double> RankWindow::*from,
                     std::optional<double> RankComparison::*to, WindowComparison& out) {
  Positions known;
  std::vector<double> values;
  for (const std::size_t i : who) {
    if (const auto& value = (*row.ranks[i]).*from) {
      known.push_back(i);
      values.push_back(*value);
    }
  }
  const auto peers = mediansOfOthers(values);
  for (std::size_t place = 0; place < peers.size(); ++place) {
    out.ranks[known[place]].*to = values[place] - peers[place];
  }
}

// The same for what the operating system counted; the rank's own value and its peers' stay apart.
void compareOs(const WindowRow& row, const Positions& who, OsCounter counter, WindowComparison& out) {
  Positions known;
  std::vector<double> values;
  for (const std::size_t i : who) {
    if (const auto value = row.ranks[i]->os[counter]) {
      out.ranks[i].os.set(counter, *value);
      known.push_back(i);
      values.push_back(*value);
    }
  }
  const auto peers = mediansOfOthers(values);
  for (std::size_t place = 0; place < peers.size(); ++place) {
    out.ranks[known[place]].osPeers.set(counter, peers[place]);
  }
}

double spreadOf(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> deviations;
  for (const double value : values) {
    deviations.push_back(std::abs(value - middle));
  }
  return median(std::move(deviations));
}

void summarize(const WindowRow& row, const Positions& who, WindowComparison& out) {
  std::vector<double> lengths;
  std::vector<double> means;
  std::vector<double> spreads;
  for (const std::size_t i : who) {
    const RankWindow& window = *row.ranks[i];
    RankComparison& rank = out.ranks[i];
    rank.told = true;
    rank.selfMs = median({window.selfMs.begin(), window.selfMs.begin() + static_cast<std::ptrdiff_t>(out.steps)});
    rank.excessMs = median(rank.stepExcessMs);
    spreads.push_back(spreadOf(rank.stepExcessMs));
    double sum = 0;
    for (std::size_t step = 0; step < out.steps; ++step) {
      sum += window.selfMs[step];
    }
    rank.meanSelfMs = sum / static_cast<double>(out.steps);
    rank.meanWaitMs = window.stepMs - rank.meanSelfMs;
    means.push_back(rank.meanSelfMs);
    lengths.push_back(window.stepMs);
    out.runDelayMs = std::max(out.runDelayMs, window.runDelayMs);  // one that was not measured is the smallest
  }
  const auto peers = mediansOfOthers(means);
  for (std::size_t place = 0; place < peers.size(); ++place) {
    out.ranks[who[place]].meanExcessMs = means[place] - peers[place];
  }
  out.stepMs = median(std::move(lengths));
  out.noiseMs = 1.2533 * 1.4826 * median(std::move(spreads)) / std::sqrt(static_cast<double>(out.steps));
}

}  // namespace

WindowComparison compare(const WindowRow& row) {
  const auto [who, steps] = tellers(row);
  WindowComparison out;
  out.firstStep = row.firstStep;
  out.steps = steps;
  out.told = who.size();
  out.ranks.resize(row.ranks.size());
  if (steps == 0) {
    return out;
  }
  std::vector<double> spreads;
  for (std::size_t step = 0; step < steps; ++step) {
    compareStep(row, who, step, out, spreads);
  }
  out.spreadMs = median(std::move(spreads));
  summarize(row, who, out);
  compareEvidence(row, who, &RankWindow::inputMs, &RankComparison::inputMs, out);
  compareEvidence(row, who, &RankWindow::cpuMs, &RankComparison::cpuMs, out);
  compareEvidence(row, who, &RankWindow::runDelayMs, &RankComparison::runDelayMs, out);
  for (const OsCounter counter : allOsCounters()) {
    compareOs(row, who, counter, out);
  }
  return out;
}

}  // namespace straggler
