// Cause: what the evidence says of a named rank's excess. A part of the excess is its cause if it makes up most of it;
// otherwise the cause is not attributed, and the parts are shown all the same.
//
//   host_input     in a DataLoader's fetch; or, outside of one, the training thread was blocked until a disk had done what it
//                  asked for, and not for want of memory: it waits for what it reads, by whichever loader
//   host_launch    the training thread was ready to run, and waited for a processor; or, where that is not measured, its
//                  control group had used up its processor quota
//   host_compute   the training thread ran longer on its processor: Python or tensors, which a host cannot tell apart
//   not_attributed else: it slept or was blocked, or no part explains enough
//
//   excess 8.1 ms a step, 7.9 of them in the fetch -> 98 %: host_input.   4.0 of them in the fetch -> not_attributed
//
// Parts are never added up: a fetch may itself be blocked, or run.
#pragma once

#include <string>

#include "backend/detect/verdict.h"

namespace straggler {

inline constexpr double kExplains = 0.8;  // share of the excess that its cause must make up
inline constexpr double kMatters = 0.2;   // share of the excess from which on a time that speaks for a cause is told

// `excessMs`: a step, of the same means as the evidence.
std::string causeOf(const Evidence& evidence, double excessMs);

}  // namespace straggler
