// StepFinder: cuts a rank's stream of operations into training steps without the user's help.
//
// Three ways, the first that applies:
//   kGraphTask  a backward that issues collectives ends a step. Several backwards may belong to one step (two losses,
//               reentrant checkpointing): the shortest period in the sequence of backwards, told apart by what they
//               issue, says how many.
//   kOpPeriod   no backward issues collectives: the period of the operation sequence is a step.
//   kTime       no period either: a step is a window of one second.
//
//   backwards A A A A          -> period 1: four steps
//   backwards G D G D G D      -> period 2: three steps
//
// A step's number counts from 0. Ranks that issue the same operations number their steps alike. Operations of other
// threads and point to point calls do not count. Not thread-safe: it belongs to the monitor.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "backend/base/clock.h"
#include "backend/observe/operation.h"

namespace straggler {

enum class StepsFoundBy : std::uint8_t { kNone, kGraphTask, kOpPeriod, kTime };
std::string_view toString(StepsFoundBy foundBy);
std::optional<StepsFoundBy> stepsFoundByFromString(std::string_view text);

struct StepEnd {
  std::int64_t index = 0;
  Instant begin{};
  Instant end{};
};

// The shortest p for which the last tokens, `repeats` * p of them and at least `atLeast`, repeat with period p, if there is
// one. `atLeast` keeps a run of equal operations within a step from being taken for steps of one operation.
std::optional<std::size_t> shortestPeriod(const std::deque<std::uint64_t>& tokens, std::size_t repeats,
                                          std::size_t atLeast);

class StepFinder {
 public:
  // Takes the next operation, in order of arrival. Returns the step that ended before it, if one did.
  std::optional<StepEnd> add(const Operation& operation);
  // The step that ended with the last operation, when no more will come.
  std::optional<StepEnd> finish();

  StepsFoundBy foundBy() const { return foundBy_; }

 private:
  std::optional<StepEnd> addInGraph(const Operation& operation);
  std::optional<StepEnd> closeBackward();
  std::optional<StepEnd> addByPeriod(const Operation& operation);
  std::optional<StepEnd> addByTime(const Operation& operation);
  std::optional<StepEnd> endStep(Instant end);
  void learnPeriod();

  StepsFoundBy foundBy_ = StepsFoundBy::kNone;
  std::int64_t nextIndex_ = 0;
  std::optional<Instant> begin_;  // of the running step; none: before the first operation
  Instant lastEnd_{};             // when the rank could go on after the last operation

  // Of the operation sequence, or of the sequence of backwards.
  std::deque<std::uint64_t> tokens_;
  std::size_t period_ = 0;  // 0: not known yet
  std::size_t position_ = 0;
  std::size_t mismatches_ = 0;

  // The backward that is being read.
  int graphTask_ = kNoGraphTask;
  std::uint64_t graphToken_ = 0;
  Instant graphEnd_{};
};

}  // namespace straggler
