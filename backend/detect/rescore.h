// Rescore: feeds windows that were recorded, or made up (synthetic_run.h), through the detector again, under other options or
// in windows of another length. Frames in, verdicts out: it needs no files.
//
// With the options and windows that the job had, it tells what the job told.
//
//   Rescore rescore({0, 1, 2, 3}, {.recordedSteps = 10, .steps = 20, .detector = {.relativeGate = 0.02}});
//   for (const auto& frame : frames) rescore.apply(frame);
//   rescore.finish();
//   rescore.events(), rescore.model().verdict()
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/detect/job_model.h"
#include "backend/detect/regrouping.h"

namespace straggler {

class Rescore {
 public:
  struct Options {
    int recordedSteps = 10;  // a window
    int steps = 10;          // a window that is judged
    DetectorOptions detector;
  };

  // `ranks`: global, ascending.
  Rescore(std::vector<int> ranks, const Options& options);

  void apply(const Frame& frame);

  // What is left of the last windows is judged too, as at the end of a job.
  void finish();

  // All verdicts that started, changed or cleared, oldest first. The model keeps the last of them only.
  const std::vector<Verdict>& events() const { return events_; }
  const JobModel& model() const { return model_; }
  int steps() const { return steps_; }
  // Windows that a regrouping left out, of all ranks.
  std::uint64_t leftOut() const { return regrouping_ ? regrouping_->leftOut() : 0; }

 private:
  void feed(const Frame& frame);

  std::vector<int> ranks_;
  int steps_;
  JobModel model_;
  std::optional<Regrouping> regrouping_;  // nothing: windows are judged as they were recorded
  std::vector<Verdict> events_;
};

}  // namespace straggler
