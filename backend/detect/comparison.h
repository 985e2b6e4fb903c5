// Comparison: what one window says of each rank beside its peers. Pure; where a rank told nothing, nothing is said.
//
// A rank's excess in a step is its self time less the median of its peers' in that step. Its excess in the window is the
// median over the steps, so single late steps (a checkpoint, a collector's pause) do not count.
//
//   self time of ranks 0..3 in a step: 25 26 33 25 ms  ->  excess 0 1 8 0... (medians of the others: 26, 25, 25, 26)
//
// The noise is that of such a median: 1.2533 * 1.4826 * MAD / sqrt(steps), MAD being the median absolute deviation of a
// rank's steps within the window, in the median over the ranks (the standard error of a median of normal values).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/detect/window_table.h"

namespace straggler {

struct RankComparison {
  bool told = false;
  double selfMs = 0;    // median over the steps
  double excessMs = 0;  // median over the steps
  double meanSelfMs = 0;
  double meanWaitMs = 0;          // what is left of a step
  double meanExcessMs = 0;        // of the means over the steps, as the evidence is
  std::optional<double> inputMs;  // excess of the means, a step
  std::optional<double> cpuMs;
  std::optional<double> runDelayMs;
  OsEvidence os;                 // of the rank, a step; no excess
  OsEvidence osPeers;            // the median of its peers
  std::size_t timesLargest = 0;  // steps in which it had the largest self time
  std::vector<double> stepExcessMs;
};

struct WindowComparison {
  std::int64_t firstStep = 0;
  std::size_t steps = 0;
  std::size_t told = 0;               // ranks
  double stepMs = 0;                  // median over the ranks
  double spreadMs = 0;                // largest excess of a step, in the median over the steps
  double noiseMs = 0;                 // standard deviation of excessMs
  std::optional<double> runDelayMs;   // a step, the largest of a rank; of those that measured it
  std::vector<RankComparison> ranks;  // by position

  std::int64_t lastStep() const { return firstStep + static_cast<std::int64_t>(steps) - 1; }
};

WindowComparison compare(const WindowRow& row);

}  // namespace straggler
