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
// Backwards can nest, so each graph task keeps its own last arrival.
//
//   release 0 ms | compute | bucket arrives 12 | compute | last bucket arrives 20 | blocked | release 24
//   self time 20 ms, wait time 4 ms
//
// Bounded: where no step ends for long (a rank that only sends and receives), the intervals so far are packed into one of
// the length of their union, which leaves the step's sum as it is.
//
// Not thread-safe: it belongs to the monitor.
#pragma once

#include <cstddef>
#include <map>
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
  static constexpr std::size_t kMaxIntervals = 8192;

  // Operations in order of arrival. Those of other threads are ignored.
  void add(const Operation& operation);

  // The share of [begin, end]; what is blocked after `end` is kept for the steps that follow.
  StepTime close(Instant begin, Instant end);

  // How many intervals are kept for the running step.
  std::size_t intervals() const { return blocked_.size() + backwards_.size(); }

 private:
  struct Interval {
    Instant begin;
    Instant end;
  };
  // The length of the union of all intervals within [begin, end].
  Duration blockedWithin(Instant begin, Instant end) const;
  void pack();

  std::vector<Interval> blocked_;
  std::map<int, Interval> backwards_;  // by graph task: from its last arrival so far to its end
};

}  // namespace straggler
