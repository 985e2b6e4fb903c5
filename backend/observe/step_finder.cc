#include "backend/observe/step_finder.h"

#include <algorithm>
#include <array>

namespace straggler {
namespace {

constexpr std::size_t kRepeats = 3;         // a period counts once it was seen so often
constexpr std::size_t kMinOperations = 96;  // over which a period of operations must hold before it is believed
constexpr std::size_t kMinBackwards = 12;   // the same for backwards
constexpr std::size_t kLookEvery = 32;      // operations between two looks for a period
constexpr std::size_t kMaxTokens = 1024;    // of operations, and waits
constexpr std::size_t kOperationsToGiveUp = 2048;
constexpr std::size_t kMaxBackwards = 96;   // tokens of backwards that are kept
constexpr std::size_t kMaxMismatches = 16;  // backwards in a row that do not fit the period
constexpr Duration kTimeWindow = std::chrono::seconds(1);

constexpr std::array<std::string_view, 4> kNames = {"none", "graph_task", "op_period", "time"};

std::uint64_t combine(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x9E3779B97F4A7C15ULL + (hash >> 29U);
}

std::uint64_t token(const Operation& operation) {
  return combine(combine(combine(1, operation.key.group), static_cast<std::uint64_t>(operation.key.kind)),
                 operation.bytes);
}

// When the rank could go on: its release; where that is not known, the latest that is.
Instant endOf(const Operation& operation) {
  if (operation.released.known()) {
    return operation.released.time;
  }
  return operation.completed.known() ? std::max(operation.completed.time, operation.arrival.time)
                                     : operation.arrival.time;
}

}  // namespace

std::string_view toString(StepsFoundBy foundBy) { return kNames.at(static_cast<std::size_t>(foundBy)); }

std::optional<StepsFoundBy> stepsFoundByFromString(std::string_view text) {
  const auto* name = std::find(kNames.begin(), kNames.end(), text);
  return name == kNames.end() ? std::nullopt : std::optional(static_cast<StepsFoundBy>(name - kNames.begin()));
}

std::optional<std::size_t> shortestPeriod(const std::deque<std::uint64_t>& tokens, std::size_t repeats,
                                          std::size_t atLeast) {
  const auto repeatsWith = [&](std::size_t period) {
    const auto first = tokens.end() - static_cast<std::ptrdiff_t>(std::max(repeats * period, atLeast));
    return std::equal(first + static_cast<std::ptrdiff_t>(period), tokens.end(), first);
  };
  for (std::size_t period = 1; std::max(period * repeats, atLeast) <= tokens.size(); ++period) {
    if (repeatsWith(period)) {
      return period;
    }
  }
  return std::nullopt;
}

PeriodReader::Read PeriodReader::add(std::uint64_t token) {
  Read read;
  if (period_ > 0) {
    read.ended = position_ == period_;
    position_ = read.ended ? 0 : position_;
    if (tokens_[tokens_.size() - period_] != token) {
      period_ = 0;  // learned anew
      tokens_.clear();
    }
    ++position_;
  }
  tokens_.push_back(token);
  if (tokens_.size() > kMaxTokens) {
    tokens_.pop_front();
  }
  if (period_ == 0 && tokens_.size() >= kMinOperations && tokens_.size() % kLookEvery == 0) {
    if (const auto period = shortestPeriod(tokens_, kRepeats, kMinOperations)) {
      period_ = *period;
      position_ = unfit_ = 0;
      read.learned = true;
    }
  }
  unfit_ += period_ == 0 ? 1 : 0;
  return read;
}

std::optional<StepEnd> StepFinder::add(const Operation& operation) {
  if (!operation.trainingThread) {
    return std::nullopt;
  }
  if (!isNumbered(operation.key.kind)) {
    return addPointToPoint(operation);
  }
  if (!begin_) {
    begin_ = operation.arrival.time;
  }
  if (operation.graphTask != kNoGraphTask && foundBy_ != StepsFoundBy::kGraphTask) {
    foundBy_ = StepsFoundBy::kGraphTask;
    byPointToPoint_ = false;
  }
  switch (foundBy_) {
    case StepsFoundBy::kGraphTask:
      return addInGraph(operation);
    case StepsFoundBy::kTime:
      return addByTime(operation);
    default:
      return addByPeriod(operation);
  }
}

std::optional<StepEnd> StepFinder::finish() {
  if (foundBy_ == StepsFoundBy::kGraphTask) {
    return closeBackward();
  }
  const bool whole = (byPointToPoint_ ? pointToPoint_ : collectives_).atEnd();
  return whole && foundBy_ == StepsFoundBy::kOpPeriod ? endStep(lastEnd_) : std::nullopt;
}

// ---- Backwards ----

std::optional<StepEnd> StepFinder::addInGraph(const Operation& operation) {
  std::optional<StepEnd> ended;
  if (operation.graphTask != graphTask_) {
    ended = closeBackward();
    graphTask_ = operation.graphTask;
  }
  if (graphTask_ != kNoGraphTask) {
    graphToken_ = combine(graphToken_, token(operation));
    graphEnd_ = std::max(graphEnd_, endOf(operation));
  }
  return ended;
}

std::optional<StepEnd> StepFinder::closeBackward() {
  if (graphTask_ == kNoGraphTask) {
    return std::nullopt;
  }
  const bool fits = period_ == 0 || tokens_.size() < period_ || tokens_[tokens_.size() - period_] == graphToken_;
  mismatches_ = fits ? 0 : mismatches_ + 1;
  tokens_.push_back(graphToken_);
  if (tokens_.size() > kMaxBackwards) {
    tokens_.pop_front();
  }
  graphToken_ = 0;
  graphTask_ = kNoGraphTask;
  ++position_;
  if (period_ == 0 || mismatches_ > kMaxMismatches) {
    learnPeriod();
  }
  // Until a period is known, each backward counts as a step.
  return position_ >= std::max<std::size_t>(period_, 1) ? endStep(graphEnd_) : std::nullopt;
}

void StepFinder::learnPeriod() {
  if (const auto period = shortestPeriod(tokens_, kRepeats, kMinBackwards)) {
    period_ = *period;
    position_ = period_;  // the backward just read ends a step
  }
  mismatches_ = 0;
}

// ---- Without backwards ----

// How often the rank has waited since the operation before: program order, so the same on every rank that does the same.
// It tells calls apart that are alike, the first of a step after the waits that ended the last one.
std::uint64_t StepFinder::waitsBefore(const Operation& operation) {
  const auto waits = std::erase_if(waits_, [&](Instant wait) { return wait <= operation.arrival.time; });
  if (operation.waited.known() && waits_.size() < kMaxTokens) {
    waits_.push_back(operation.waited.time);
  }
  return waits;
}

std::optional<StepEnd> StepFinder::addByPeriod(const Operation& operation) {
  const PeriodReader::Read read = collectives_.add(combine(token(operation), waitsBefore(operation)));
  if (read.learned) {
    byPointToPoint_ = false;
  } else if (byPointToPoint_) {
    return std::nullopt;  // ended by its own calls
  }
  if (!collectives_.known() && collectives_.unfit() > kOperationsToGiveUp) {
    foundBy_ = StepsFoundBy::kTime;
  }
  return endPeriod(read, operation);
}

std::optional<StepEnd> StepFinder::addPointToPoint(const Operation& operation) {
  if (foundBy_ == StepsFoundBy::kTime) {
    return addByTime(operation);
  }
  if (foundBy_ != StepsFoundBy::kNone && !byPointToPoint_) {
    return std::nullopt;
  }
  const PeriodReader::Read read = pointToPoint_.add(token(operation));
  byPointToPoint_ = byPointToPoint_ || read.learned;
  if (!byPointToPoint_ && pointToPoint_.unfit() > kOperationsToGiveUp) {
    foundBy_ = StepsFoundBy::kTime;
    begin_ = begin_.value_or(operation.arrival.time);
  }
  return byPointToPoint_ ? endPeriod(read, operation) : std::nullopt;
}

// A period ended before the operation, or begins after it. An asynchronous call before it may be waited for only later: a step
// that ended there would hold waits that are told after it was closed.
std::optional<StepEnd> StepFinder::endPeriod(const PeriodReader::Read& read, const Operation& operation) {
  if (begin_) {
    begin_ = std::min(*begin_, operation.arrival.time);
  }
  const auto ended = read.ended ? endStep(std::min(lastEnd_, operation.arrival.time)) : std::nullopt;
  lastEnd_ = endOf(operation);
  if (read.learned) {
    begin_ = lastEnd_;
    foundBy_ = StepsFoundBy::kOpPeriod;
  }
  return ended;
}

std::optional<StepEnd> StepFinder::addByTime(const Operation& operation) {
  const bool full = operation.arrival.time - *begin_ >= kTimeWindow;
  auto ended = full ? endStep(std::min(lastEnd_, operation.arrival.time)) : std::nullopt;
  lastEnd_ = endOf(operation);
  return ended;
}

std::optional<StepEnd> StepFinder::endStep(Instant end) {
  const StepEnd step{nextIndex_++, *begin_, std::max(end, *begin_)};
  begin_ = step.end;
  position_ = 0;
  return step;
}

}  // namespace straggler
