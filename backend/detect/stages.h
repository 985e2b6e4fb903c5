// Stages: whether one stage limits a pipeline, persistently. A stage is busy for its self time over the length of its step,
// whichever way it counts steps; the pipeline goes at the pace of the busiest, and the others wait for it.
//
//   stages busy 40, 60, 80, 100 % of a step of 50 ms: were the work spread evenly each would be for 70 %, and a step up to
//   15 ms shorter: excess 15 ms, by stage 3
//
// Tested is that excess against max(1 ms, 10 % of the step), like everything else here over windows (cusum.h). It is an
// imbalance if one stage is the busiest in three quarters of the windows; nobody is to blame for how layers were spread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/detect/cusum.h"
#include "backend/detect/suspicion.h"

namespace straggler {

struct StageLoad {
  double selfMs = 0;  // a step, of its median rank
  double stepMs = 0;

  double busy() const { return stepMs > 0 ? selfMs / stepMs : 0; }
};

class Stages {
 public:
  // Takes how busy the stages are, all of them, as of the window that begins with `firstStep`; says whether `uneven()`
  // changed. `blamed`: a rank is named, which explains what there is.
  bool add(const std::vector<StageLoad>& loads, std::int64_t firstStep, bool blamed, double limit);

  bool uneven() const { return test_.on; }
  std::size_t limiting() const { return limiting_; }                // the busiest, last
  double limitingBusy() const { return busy_; }                     // of a step
  double meanBusy() const { return meanBusy_; }                     // of all stages
  double excessMs() const { return excess_.median().value_or(0); }  // a step, the longest that a stage counts in
  double share() const { return busy_ - meanBusy_; }
  std::int64_t sinceStep() const { return sinceStep_; }
  double confidence() const { return test_.confidence(1); }

 private:
  bool stop();

  Cusum test_;
  Recent excess_{Suspicion::kRecent};
  std::int64_t sinceStep_ = 0;
  std::vector<std::uint64_t> timesBusiest_;  // by stage, since then
  std::size_t limiting_ = 0;
  double busy_ = 0;
  double meanBusy_ = 0;
};

}  // namespace straggler
