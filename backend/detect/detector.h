// Detector: names the straggler, or says that nobody is one, or abstains. A pure function of what the ranks told.
//
// For rank r and step t, the excess is r's self time less the median of its peers' self times in that step. Steps are
// taken in blocks; a block's excess is the median of its steps, so single late steps (a checkpoint, a collector's pause)
// do not count. A rank is a straggler if, over the longest run of blocks up to the end in which most do so, its excess
// is above the gate
//
//   gate = max(absoluteGateMs, relativeGate * median step length)
//
// and that is significant: the one-sided sign test of "excess above the gate" against chance, times the number of ranks
// (Bonferroni), is at most `significance`.
//
//   4 ranks, step 38 ms, gate max(0.5, 0.05 * 38) = 1.9 ms. Rank 2's blocks: 8.1 8.0 8.3 ... (20 of 20 above).
//   p = 4 * 0.5^20 = 4e-6 -> straggler rank 2, +8.1 ms a step, 21 % of the step.
//
// It abstains when the ranks were compared over too few blocks for any rank to be significant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/detect/verdict.h"

namespace straggler {

struct DetectorOptions {
  double absoluteGateMs = 0.5;  // smaller excess is nobody's concern
  double relativeGate = 0.05;   // of the step's length
  double persistence = 0.8;     // share of the blocks that must be above the gate
  double significance = 0.01;   // of the whole table, over all ranks
};

// One rank's excess, block by block, oldest first.
struct RankExcess {
  int rank = 0;  // global
  std::vector<double> blocksMs;
};

struct DetectorInput {
  std::vector<RankExcess> ranks;
  std::vector<std::int64_t> blockSteps;  // number of each block's first step; ranks may have told of some windows only
  double stepMs = 0;                     // median length of a step
  std::int64_t stepsPerBlock = 10;
};

Verdict detect(const DetectorInput& input, const DetectorOptions& options = {});

}  // namespace straggler
