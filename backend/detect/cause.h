// Cause: what the evidence says of a named rank's excess. A part of the excess is its cause if it makes up most of it;
// otherwise the cause is not attributed, and the parts are shown all the same.
//
//   host_input     in a DataLoader's fetch
//   host_launch    the training thread was ready to run, and waited for a processor
//   host_compute   the training thread ran longer on its processor: Python or tensors, which a host cannot tell apart
//   not_attributed else: it slept or was blocked, or no part explains enough
//
//   excess 8.1 ms a step, 7.9 of them in the fetch -> 98 %: host_input.   4.0 of them in the fetch -> not_attributed
#pragma once

#include <string>

#include "backend/detect/verdict.h"

namespace straggler {

inline constexpr double kExplains = 0.8;  // share of the excess that its cause must make up

// `excessMs`: a step, of the same means as the evidence.
std::string causeOf(const Evidence& evidence, double excessMs);

// The evidence as part of a sentence; empty if nothing was measured.
std::string describe(const Evidence& evidence);

}  // namespace straggler
