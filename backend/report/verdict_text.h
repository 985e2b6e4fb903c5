// A verdict as people read it. The first line begins with what it is and who is meant; then why, then what to look at:
//
//   STRAGGLER rank 2 (host) cause=host_input +8.1 ms/step (21 % of the step) since step 30
//     why: <the numbers behind it>
//     mitigation carries its late gradients: <what it did, where it is on>
//     next: look at rank 2's data loader, its disk and its workers
#pragma once

#include <string>
#include <vector>

#include "backend/detect/verdict.h"
#include "backend/report/job_report.h"

namespace straggler {

// `report` tells the hosts.
std::string verdictLines(const Verdict& verdict, const JobReport& report);

// What was said before the verdict in force, one line each, the last ten; empty if nothing was.
std::string earlierLines(const JobReport& report);

}  // namespace straggler
