// Transfers: whether moving data takes longer than it did, so that all wait though no rank works more: a slow link.
//
// The transfer of an operation is what is left when its last rank has arrived: no rank's own time. It is at most the smallest
// wait, arrival to completion, of its ranks, each on its own clock: no clocks are compared. Only of operations that no rank
// completes before the last has arrived.
//
// Like operations are of one group, kind and size class. Of each window the median of their transfers, less the median of
// their last windows, times how many there are in a step, summed over what is called in a group, is what the group's
// transfers cost a step more than they did. As much of it as the rank that waits least in a step waits longer than it did is
// tested, since a transfer that is hidden behind work costs nothing:
//
//   two buckets a step, 4 ms each, now 29 ms: +50 ms; the smallest wait of a step 9 ms, now 57: +48 ms  ->  excess 48 ms
//   the same, behind a backward that is longer than that: the waits are as they were                   ->  excess 0
//   gate = max(1 ms, 10 % of the step, 3 times the noise)
//
// Data is moved by threads, one at each end, that wait for processors as the training threads do. So from the excess is
// taken twice what the training threads' largest wait for a processor has grown by:
//
//   +5.5 ms on a host that others use too, where that wait grew from 4.8 to 8.2 ms a step  ->  excess below zero
//
// While a rank is named, or all are slower, nothing is tested: a host that is overloaded moves data late too. While transfers
// are slow the past is kept; after kSettled windows they are the job's own. Bounded: what is called beyond kMaxLines is not seen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "backend/detect/comparison.h"
#include "backend/detect/cusum.h"
#include "backend/detect/suspicion.h"
#include "backend/observe/operation.h"

namespace straggler {

class Transfers {
 public:
  static constexpr std::size_t kPast = 50;       // windows
  static constexpr std::size_t kMinPast = 5;     // before anything is said
  static constexpr std::size_t kMinSamples = 3;  // of a window; fewer wait for those of the next
  static constexpr std::size_t kMaxSamples = 1024;
  static constexpr std::size_t kMaxLines = 1024;
  static constexpr std::size_t kSettled = 200;

  // One operation, of 1 in `sampling` that are told. `sizeClass`: of its bytes.
  void add(const OpKey& key, std::uint8_t sizeClass, double transferMs, std::uint32_t sampling);

  // Takes a window; `hold`: something else explains what there is. Says whether `slow()` changed.
  bool close(const WindowComparison& window, bool hold, double limit);

  bool slow() const { return test_.on; }
  bool settled() const { return settled_; }  // why it is slow no more
  std::vector<GroupId> slowGroups() const;   // worst first
  std::int64_t sinceStep() const { return sinceStep_; }
  double excessMs() const { return excess_.median().value_or(0); }  // a step
  double pastMs() const { return pastWait_.median().value_or(0); }  // smallest wait of a step
  double confidence() const { return test_.confidence(1); }

 private:
  struct Line {
    GroupId group = 0;
    OpKind kind = OpKind::kAllReduce;
    std::uint8_t sizeClass = 0;
    auto operator<=>(const Line&) const = default;
  };
  struct LineState {
    std::vector<double> samplesMs;  // of the window
    std::optional<double> nowMs;    // median of the last window that had enough of them
    Recent pastMs{kPast};
    double operations = 0;  // since the beginning
  };

  std::map<GroupId, double> excessByGroup();
  void learn(double waitMs, const std::optional<double>& runDelayMs);
  double processorsMs(const std::optional<double>& runDelayMs) const;
  double noise(double excessMs);
  bool forget(bool settled);

  std::map<Line, LineState> lines_;
  double steps_ = 0;  // since the beginning
  std::int64_t lastStep_ = -1;
  Recent pastWait_{kPast};
  Recent pastRunDelay_{kPast};
  Recent differencesMs_{20};
  std::optional<double> lastExcessMs_;
  Cusum test_;
  Recent excess_{Suspicion::kRecent};
  std::map<GroupId, double> byGroup_;  // excess of the last window
  std::int64_t sinceStep_ = 0;
  std::size_t windows_ = 0;  // since it is slow
  double toldMs_ = 0;
  bool settled_ = false;
};

}  // namespace straggler
