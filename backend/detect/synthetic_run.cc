#include "backend/detect/synthetic_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace straggler {
namespace {

using Spec = SyntheticSpec;

constexpr int kRanksAHost = 8;
constexpr std::int64_t kDutyPeriod = 20;  // steps, of D6
constexpr double kDutySteps = 10;
constexpr double kSlowDown = 0.3;              // of D7
constexpr double kCollectorShare = 1.0 / 100;  // of D9
constexpr double kCollectorMs = 200;
constexpr double kLongestPause = 1000;  // times the least: what a Pareto distribution gives once in a life

constexpr std::array<std::string_view, 7> kDelays = {"none", "D1", "D3", "D6", "D7", "D8", "D9"};

bool setDelay(Spec& spec, std::string_view word) {
  const auto* name = std::find(kDelays.begin(), kDelays.end(), word);
  if (name != kDelays.end()) {
    spec.delay = static_cast<Delay>(name - kDelays.begin());
  }
  return name != kDelays.end();
}

std::string_view delayOf(const Spec& spec) { return kDelays.at(static_cast<std::size_t>(spec.delay)); }

constexpr std::array<Field<Spec>, 17> kTable = {{
    {"ranks", &Spec::ranks, 2, 65536, "ranks", "of the job"},
    {"windows", &Spec::windows, 1, 1e7, "windows", "that each rank tells"},
    {"steps", &Spec::steps, 1, 1000, "steps", "a window"},
    {"seed", &Spec::seed, 0, 1e15, "", "the same gives the same windows"},
    {"base_ms", &Spec::baseMs, 0.001, 1e6, "ms", "self time of a step"},
    {"transfer_ms", &Spec::transferMs, 0, 1e6, "ms", "from the slowest rank's arrival to the end of the step"},
    {"noise_ms", &Spec::noiseMs, 0, 1e6, "ms", "standard deviation of a step, on its own"},
    {"spread_ms", &Spec::spreadMs, 0, 1e6, "ms", "standard deviation over the ranks, for good"},
    {"slow_ms", &Spec::slowMs, 0, 1e6, "ms", "standard deviation of what changes slowly, for each rank on its own"},
    {"slow_windows", &Spec::slowWindows, 0.01, 1e6, "windows", "after which it has faded to a third"},
    {"pause_share", &Spec::pauseShare, 0, 1, "of the steps", "in which a rank pauses"},
    {"pause_ms", &Spec::pauseMs, 0.001, 1e6, "ms", "the least pause"},
    {"pause_tail", &Spec::pauseTail, 0.1, 100, "", "exponent of Pareto's distribution; small: pauses are long"},
    {"delay", ChoiceMember<Spec>{"none, D1, D3, D6, D7, D8, or D9", setDelay, delayOf}, 0, 0, "",
     "what is put in, by the names of the delay models"},
    {"ms", &Spec::delayMs, 0, 1e6, "ms", "of D1, D3 and D8"},
    {"rank", &Spec::rank, 0, 65535, "", "which is late, of D1 and D3"},
    {"from_step", &Spec::fromStep, 0, 1e10, "", "first step with the delay"},
}};

}  // namespace

std::span<const Field<SyntheticSpec>> syntheticFields() { return kTable; }

SyntheticSpec parseSynthetic(std::string_view text, SyntheticSpec spec) {
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) {
      throw FieldError("'" + std::string(part) + "' is not valid; allowed: name=value, separated by commas");
    }
    setField(syntheticFields(), spec, part.substr(0, equals), part.substr(equals + 1));
  }
  return spec;
}

std::string toText(const SyntheticSpec& spec) {
  std::vector<std::string> parts;
  for (const auto& row : fieldRows(syntheticFields(), spec)) {
    parts.push_back(row.name + "=" + row.value);
  }
  return join(parts, ",");
}

SyntheticRun::SyntheticRun(const SyntheticSpec& spec)
    : spec_(spec), random_(static_cast<std::uint64_t>(spec.seed)), slowMs_(static_cast<std::size_t>(spec.ranks)) {
  if (spec.rank >= spec.ranks) {
    throw FieldError("rank=" + std::to_string(spec.rank) + " is not valid; allowed: a rank of the job, below " +
                     std::to_string(spec.ranks));
  }
  if (spec.delay != Delay::kNone && spec.fromStep >= spec.windows * spec.steps) {
    throw FieldError("from_step=" + std::to_string(spec.fromStep) +
                     " is not valid; allowed: a step of the job, below " + std::to_string(spec.windows * spec.steps));
  }
  for (auto& slow : slowMs_) {
    spreadMs_.push_back(spec.spreadMs * normal_(random_));
    slow = spec.slowMs * normal_(random_);
  }
}

std::vector<int> SyntheticRun::members() const {
  std::vector<int> all(static_cast<std::size_t>(spec_.ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::optional<std::vector<Frame>> SyntheticRun::next() {
  if (told_ > spec_.windows) {
    return std::nullopt;
  }
  const std::int64_t number = told_++;
  if (number < 0) {
    return hellos();
  }
  return number < spec_.windows ? window() : ends();
}

std::vector<Frame> SyntheticRun::hellos() const {
  std::vector<Frame> frames;
  for (const int rank : members()) {
    frames.push_back({rank, {RankHello{"host-" + std::to_string(rank / kRanksAHost), rank + 1, "synthetic"}}});
  }
  frames.front().messages.emplace_back(GroupInfo{"world", "synthetic", "none", members()});
  return frames;
}

std::vector<Frame> SyntheticRun::ends() const {
  std::vector<Frame> frames;
  for (const int rank : members()) {
    RankCounters last;
    last.final = true;
    frames.push_back({rank, {last}});
  }
  return frames;
}

double SyntheticRun::pauseMs() {
  if (spec_.pauseShare == 0 || uniform_(random_) >= spec_.pauseShare) {
    return 0;
  }
  return spec_.pauseMs * std::min(kLongestPause, std::pow(1 - uniform_(random_), -1 / spec_.pauseTail));
}

double SyntheticRun::delayMs(std::int64_t rank, std::int64_t step) {
  if (step < spec_.fromStep) {
    return 0;
  }
  switch (spec_.delay) {
    case Delay::kD1:
    case Delay::kD3:
      return rank == spec_.rank ? spec_.delayMs : 0;
    case Delay::kD6:
      return rank == 0 && step % kDutyPeriod == 0 ? kDutySteps * (spec_.baseMs + spec_.transferMs) : 0;
    case Delay::kD7:
      return kSlowDown * spec_.baseMs;
    case Delay::kD8:
      return step % spec_.ranks == rank ? spec_.delayMs : 0;
    case Delay::kD9:
      return uniform_(random_) < kCollectorShare ? kCollectorMs : 0;
    default:
      return 0;
  }
}

double SyntheticRun::selfMs(std::size_t rank) {
  return std::max(0.0, spec_.baseMs + spreadMs_[rank] + slowMs_[rank] + spec_.noiseMs * normal_(random_) + pauseMs());
}

StepWindow SyntheticRun::windowOf(std::size_t rank, std::vector<double>& slowestMs) {
  StepWindow window;
  window.firstStep = (told_ - 1) * spec_.steps;
  window.foundBy = StepsFoundBy::kGraphTask;
  const double kept = std::exp(-1 / spec_.slowWindows);
  slowMs_[rank] = kept * slowMs_[rank] + std::sqrt(1 - kept * kept) * spec_.slowMs * normal_(random_);
  double inputMs = 0;
  for (std::size_t place = 0; place < slowestMs.size(); ++place) {
    const std::int64_t step = window.firstStep + static_cast<std::int64_t>(place);
    const double delay = delayMs(static_cast<std::int64_t>(rank), step);
    const double self = selfMs(rank) + delay;
    slowestMs[place] = std::max(slowestMs[place], self);
    inputMs += spec_.delay == Delay::kD3 ? delay : 0;
    window.selfUs.push_back(static_cast<std::uint32_t>(std::min(1e3 * self, 4e9)));
  }
  window.inputUs = static_cast<std::uint64_t>(1e3 * inputMs);
  return window;
}

std::vector<Frame> SyntheticRun::window() {
  std::vector<double> slowestMs(static_cast<std::size_t>(spec_.steps));
  std::vector<StepWindow> windows;
  for (std::size_t rank = 0; rank < slowMs_.size(); ++rank) {
    windows.push_back(windowOf(rank, slowestMs));
  }
  const double lengthMs =
      std::accumulate(slowestMs.begin(), slowestMs.end(), 0.0) + static_cast<double>(spec_.steps) * spec_.transferMs;
  std::vector<Frame> frames;
  for (std::size_t rank = 0; rank < windows.size(); ++rank) {
    windows[rank].durationUs = static_cast<std::uint64_t>(1e3 * lengthMs);
    frames.push_back({static_cast<int>(rank), {std::move(windows[rank])}});
  }
  return frames;
}

}  // namespace straggler
