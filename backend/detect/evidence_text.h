// EvidenceText: the evidence of a verdict as parts of its sentence.
#pragma once

#include <string>

#include "backend/detect/verdict.h"

namespace straggler {

// The parts of the excess; empty if nothing was measured.
std::string describe(const Evidence& evidence);

// What the operating system counted, as clauses, the rank's beside its peers': only where it is another than theirs by so
// much that it may have to do with the excess (VERDICTS.md). Empty if nothing is. `excessMs`: as causeOf() takes it.
//   its disk: blocked in I/O for 6.1 ms a step, peers 0.1; 0.2 MB read a step, peers 0.2
std::string describeOs(const Evidence& evidence, double excessMs);

}  // namespace straggler
