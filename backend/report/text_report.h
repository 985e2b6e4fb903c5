// The report as people read it: the verdict in force in the first line, what was said before it, then one row a rank,
// then the arrival skew by kind of operation, then what mitigation did. Pure functions; they are run on rank 0 without an
// interpreter at hand, and by `straggler report`.
#pragma once

#include <string>

#include "backend/report/job_report.h"

namespace straggler {

// One line, when the session begins to be understood: who is seen, what is measured, what is not.
std::string armedLine(const JobReport& report);

// The verdict, those before it, the tables and the notes.
std::string textReport(const JobReport& report);

}  // namespace straggler
