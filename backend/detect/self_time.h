// Self time: how much of a step a rank spent on its own work, as opposed to being blocked in collectives.
//
// It is the step's length less the union of the intervals in which the rank was blocked, all on the rank's own clock:
//
//   a synchronous call        from its arrival to its completion
//   an asynchronous call      from the beginning to the end of its wait()
//   a backward's own calls    from the last arrival to the end of the backward, where the reducer waits. The gaps between
//                             the buckets of one backward are self time: nobody is blocked there.
//
// So a rank that waits for another is not blamed for it, in whichever group it waits; and no clocks are compared.
//
//   release 0 ms | compute | bucket arrives 12 | compute | last bucket arrives 20 | blocked | release 24
//   self time 20 ms, wait time 4 ms
//
// Not thread-safe: it belongs to the monitor.
#pragma once

#include <optional>
#include <vector>

#include "backend/base/clock.h"
#include "backend/observe/operation.h"

namespace straggler {

struct StepTime {
  Duration self{};
  Duration wait{};
};

class SelfTime {
 public:
  // Operations in order of arrival. Those of other threads are ignored.
  void add(const Operation& operation);

  // The share of [begin, end]; what is blocked after `end` is kept for the steps that follow.
  StepTime close(Instant begin, Instant end);

 private:
  struct Interval {
    Instant begin;
    Instant end;
  };
  // Ends the backward that is being read: its last arrival to its end.
  void closeBackward();

  std::vector<Interval> blocked_;
  int graphTask_ = kNoGraphTask;
  std::optional<Interval> backward_;
};

}  // namespace straggler
