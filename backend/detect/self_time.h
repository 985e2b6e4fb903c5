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
// A fetch is the time inside a DataLoader. The part of it in which the rank was not blocked is the step's input time, and
// belongs to its self time:
//
//   fetch 0..9 ms, within it a synchronous call 4..6 | compute | call 20..24
//   self time 18 ms, of it input 7; wait time 6 ms
//
// Bounded: where no step ends for long (a rank that only sends and receives), the intervals so far are packed into one of
// the length of their union, which leaves the step's sums as they are,
// but for what a later call blocks of a fetch that is packed already.
//
// Not thread-safe: it belongs to the monitor.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "backend/base/clock.h"
#include "backend/observe/fetch.h"
#include "backend/observe/operation.h"

namespace straggler {

struct StepTime {
  Duration self{};
  Duration wait{};
  Duration input{};  // part of `self`
};

class SelfTime {
 public:
  static constexpr std::size_t kMaxIntervals = 8192;

  // Operations in order of arrival. Those of other threads are ignored.
  void add(const Operation& operation);

  void addFetch(Fetch fetch);

  // The share of [begin, end]; what lies after `end` is kept for the steps that follow. Every fetch that ended before the
  // step did must have been added.
  StepTime close(Instant begin, Instant end);

  // Whether there ever was a fetch. Until then an input time of 0 means that nothing is known.
  bool sawFetch() const { return sawFetch_; }

  // How many intervals are kept for the running step.
  std::size_t intervals() const { return blocked_.size() + backwards_.size() + fetches_.size(); }

 private:
  struct Interval {
    Instant begin;
    Instant end;
  };
  std::vector<Interval> blocked() const;
  // The lengths, within [begin, end], of the union of all that blocked, and of what is in a fetch and not blocked.
  StepTime within(Instant begin, Instant end) const;
  void packIfMany();

  std::vector<Interval> blocked_;
  std::map<int, Interval> backwards_;  // by graph task: from its last arrival so far to its end
  std::vector<Interval> fetches_;
  bool sawFetch_ = false;
};

}  // namespace straggler
