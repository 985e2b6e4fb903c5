// BriefReport: the report for ranks that do not collect, small enough for one key of the store however many ranks there
// are: all totals, the verdict, the latest of the history, and the rows of the ranks that are named.
#pragma once

#include <cstddef>
#include <string>

#include "backend/report/job_report.h"

namespace straggler {

inline constexpr std::size_t kMaxBriefBytes = 4096;

// A `report` record of at most kMaxBriefBytes, with a note that says what it leaves out. What does not fit is left out in
// this order: older verdicts, groups, rows of mitigation, rows, what the operating system counted (older verdicts have
// nothing of it), notes. Empty if not even the rest fits.
std::string briefJson(const JobReport& report);

}  // namespace straggler
