// What mitigation did, as people read it: a line under a verdict, and the table at the end. Nothing where it is off.
#pragma once

#include <string>

#include "backend/detect/verdict.h"
#include "backend/report/job_report.h"

namespace straggler {

// What it does about the ranks that a verdict names, or, of an imbalance, about all of them:
//
//     mitigation carries its late gradients: 40 slots were filled for it, 3.2 s saved
std::string mitigationLine(const Verdict& verdict, const JobReport& report);

// For what it is armed, or why it is not, once if all ranks say the same; then a row for each rank for which slots were
// filled or which says something else than most.
std::string mitigationTable(const JobReport& report);

}  // namespace straggler
