// torch_straggler._C: the binary part of the package.
#include "backend/c10d/blocking.h"
#include "backend/c10d/process_log.h"
#include "backend/c10d/torch_version.h"
#include "python_registration/bindings/bind.h"
#include "python_registration/bindings/python_log.h"

namespace {

void withoutInterpreterLock(c10::function_ref<void()> work) {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) {
    return work();
  }
  const pybind11::gil_scoped_release released;
  work();
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  straggler::setBlockingGuard(&withoutInterpreterLock);
  straggler::setProcessLog(straggler::pythonLog());
  module.doc() = "The binary part of torch_straggler: wrapped backends, sessions, reports.";
  module.attr("BUILT_FOR_TORCH") = std::to_string(TORCH_VERSION_MAJOR) + "." + std::to_string(TORCH_VERSION_MINOR);
  straggler::bindBackend(module);
  straggler::bindMitigation(module);
  straggler::bindSession(module);
  straggler::bindReplay(module);
}
