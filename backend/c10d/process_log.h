// ProcessLog: where the sessions of this process say what people should read. The Python module hands in one that speaks
// through Python's logging; without it, lines go to standard error.
#pragma once

#include <memory>

#include "backend/report/log.h"

namespace straggler {

// Called at most once, before the first backend is made.
void setProcessLog(std::shared_ptr<Log> log);

std::shared_ptr<Log> processLog();

}  // namespace straggler
