// PythonLog: what sessions say goes to Python's `logging`, through torch_straggler._log.
//
// A thread of its own takes the interpreter lock; it is started with the first line, and ends with the flush at the end of a
// session, until the next line. So training, monitor and collector
// never take it: they put their lines into a bounded queue, and go on. A script that holds the lock for long, or a handler
// that is slow, delays the lines and nothing else. Where Python cannot take a line, it goes to standard error.
//
// At the end: stop() waits a little for what is on its way, writes what is left to standard error as far as that takes it,
// and ends the thread. From then on lines go straight to standard error. A thread that is in a user's handler for longer
// is left behind; if the interpreter ends it later, nothing of ours is in its way.
//
// Fork: a child has no such thread and begins anew.
#pragma once

#include <memory>

#include "backend/report/log.h"

namespace straggler {

class PythonLog final : public Log {
 public:
  void line(Severity severity, const std::string& text) noexcept override;
  // Lets go of the interpreter lock while it waits.
  void flush(Duration patience) noexcept override;
  void stop(Duration patience) noexcept;
};

// The one of this process.
std::shared_ptr<PythonLog> pythonLog();

}  // namespace straggler
