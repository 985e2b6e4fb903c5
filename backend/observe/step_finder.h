// StepFinder: cuts a rank's stream of operations into training steps without the user's help.
//
// Three ways, the first that applies:
//   kGraphTask  a backward that issues collectives ends a step. Several backwards may belong to one step (two losses,
//               reentrant checkpointing): the shortest period in the sequence of backwards, told apart by what they
//               issue, says how many.
//   kOpPeriod   no backward issues collectives: the period of the operation sequence is a step. It is that of the
//               collectives; until they show one, as in a pipeline that has none, that of the point to point calls.
//   kTime       no period either: a step is a window of one second.
//
//   backwards A A A A          -> period 1: four steps
//   backwards G D G D G D      -> period 2: three steps
//
//   calls aaaa, waits for all four, aaaa ...     -> an operation is told apart by the waits before it too: four a step
//   first stage  send send recv recv send ...    -> period 4
//   middle stage recv send recv send recv ...    -> period 2: its steps are parts of the first stage's
//
// A step's number counts from 0. Ranks that issue the same operations number their steps alike; ranks that do not, such as
// the stages of a pipeline, each count in steps of their own. Operations of other threads do not count. Not thread-safe:
// it belongs to the monitor.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

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

// Reads a sequence of tokens one by one, learns its period and says where one ends.
class PeriodReader {
 public:
  struct Read {
    bool ended = false;    // a period ended before this token
    bool learned = false;  // with this token the period is known; the next begins one
  };
  Read add(std::uint64_t token);

  bool known() const { return period_ > 0; }
  bool atEnd() const { return period_ > 0 && position_ == period_; }
  std::size_t unfit() const { return unfit_; }  // tokens without a period, since there was one

 private:
  std::deque<std::uint64_t> tokens_;
  std::size_t period_ = 0;  // 0: not known yet
  std::size_t position_ = 0;
  std::size_t unfit_ = 0;
};

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
  std::optional<StepEnd> addPointToPoint(const Operation& operation);
  std::optional<StepEnd> endPeriod(const PeriodReader::Read& read, const Operation& operation);
  std::uint64_t waitsBefore(const Operation& operation);
  std::optional<StepEnd> addByTime(const Operation& operation);
  std::optional<StepEnd> endStep(Instant end);
  void learnPeriod();

  StepsFoundBy foundBy_ = StepsFoundBy::kNone;
  std::int64_t nextIndex_ = 0;
  std::optional<Instant> begin_;  // of the running step; none: before the first operation
  Instant lastEnd_{};             // when the rank could go on after the last operation

  PeriodReader collectives_;
  PeriodReader pointToPoint_;
  bool byPointToPoint_ = false;  // steps are found by it
  std::vector<Instant> waits_;   // of explicit asynchronous calls, that no operation has come after yet

  // Of the sequence of backwards.
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
