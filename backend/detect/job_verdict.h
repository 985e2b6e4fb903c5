// JobVerdict: the verdict in force on a job of several classes of peers, from those on its classes.
//
// What weighs most comes first: names, over all classes, the worst first; what is not known; what concerns everybody; what
// concerns a class; what is over.
//
//   stage 0: straggler rank 4, +3 ms; stage 1: none; stage 2: straggler rank 6, +9 ms  ->  straggler rank 6, 4; +9 ms
#pragma once

#include <optional>
#include <vector>

#include "backend/detect/verdict.h"

namespace straggler {

// `ofClasses`: at least one. `ofJob`: what was found of the job as a whole, if anything.
Verdict jobVerdict(const std::vector<const Verdict*>& ofClasses, const std::vector<Verdict>& ofJob);

}  // namespace straggler
