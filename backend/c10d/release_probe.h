// ReleaseProbe: sees, from the backend alone, when a backward returns.
//
// DDP's reducer waits for its buckets in a callback that it queues on the autograd engine, behind ours if we queue first.
// So from the first collective of a graph task a callback is queued that queues a second one: the engine runs callbacks
// in order of queueing, so the second runs after the reducer's own, right before backward() returns.
//
//   queue:  [ours]          first collective of the backward
//           [ours, reducer] last bucket is ready
//   run:    ours -> queues again -> reducer (waits for the buckets) -> ours again: the backward is released
//
// Thread safety: every function may be called from any thread inside a graph task.
#pragma once

#include <atomic>
#include <functional>

namespace straggler {

class ReleaseProbe {
 public:
  // The autograd graph task that the calling thread is in, or kNoGraphTask.
  static int currentGraphTask() noexcept;

  // Whether this is the first call for the graph task: then the caller is to call atEnd(). Backwards that nest may get
  // more than one yes; a second release of the same graph task changes nothing.
  bool isFirst(int graphTask) noexcept { return armed_.exchange(graphTask) != graphTask; }

  // Has `released` called at the end of the calling thread's graph task. Where the engine refuses, it is never called. What
  // it throws is dropped, as what its copies throw is: none of it ends in the user's backward.
  static void atEnd(std::function<void()> released) noexcept;

 private:
  std::atomic<int> armed_{-1};  // the last graph task that isFirst() said yes to
};

}  // namespace straggler
