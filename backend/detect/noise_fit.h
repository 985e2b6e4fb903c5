// NoiseFit: the noise of a recorded run, as the detector measures it, and a description of synthetic windows
// (synthetic_run.h) that have the same.
//
// Measured are a rank's excess over its peers, in windows of which every rank told:
//
//   within   noise of a window's excess, from the spread of its steps (WindowComparison::noiseMs), median over the windows
//   between  the same from window to window: sqrt(pi) / 2 times the mean difference of two that follow each other
//   total    the same from all of a rank's windows: sqrt(pi / 2) times the mean difference from their median
//   spread   standard deviation over the ranks of the median self time
//   pauses   steps whose excess is more than six standard deviations above the rank's median: their share, and Hill's
//            estimate of the exponent of their tail (B. M. Hill, Annals of Statistics 3, 1975)
//
// How much excess a rank's own noise makes depends on how many peers there are, and how the window's median takes it. So the
// description is found by trying: synthetic runs of as many ranks are measured in the same way, and noise_ms, slow_ms and
// slow_windows are moved until what is measured agrees. The steps' own noise gives `within`; what `total` has beyond that
// changes slowly, and by how much less `between` is than `total` says how slowly.
//
// A run without a straggler is wanted: a rank that is always late counts as spread, one that becomes late as slow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/detect/synthetic_run.h"
#include "backend/detect/window_table.h"

namespace straggler {

struct RunNoise {
  std::size_t windows = 0;  // that were measured
  double baseMs = 0;
  double transferMs = 0;
  double withinMs = 0;
  double betweenMs = 0;
  double totalMs = 0;
  double spreadMs = 0;
  double pauseShare = 0;
  double pauseMs = 0;
  double pauseTail = 0;
};

class NoiseFit {
 public:
  static constexpr std::size_t kMinWindows = 10;
  // The rest of a run is not looked at.
  static constexpr std::size_t kMaxWindows = 1000;
  static constexpr std::size_t kMaxShares = std::size_t{1} << 17;  // windows of single ranks: 30 MB

  // `ranks`: global, ascending.
  NoiseFit(std::vector<int> ranks, int stepsPerWindow);

  void apply(const Frame& frame);

  // Nothing for fewer than kMinWindows of which every rank told.
  std::optional<RunNoise> measured() const;
  std::optional<SyntheticSpec> like() const;

 private:
  bool full() const {
    return rows_.size() >= std::clamp(kMaxShares / std::max(ranks_.size(), std::size_t{1}), kMinWindows, kMaxWindows);
  }

  std::vector<int> ranks_;
  std::int64_t steps_;
  WindowTable table_;
  std::vector<WindowRow> rows_;  // complete, without the job's first window
};

// Of synthetic windows.
RunNoise measure(const SyntheticSpec& spec);

}  // namespace straggler
