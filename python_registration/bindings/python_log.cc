#include "python_registration/bindings/python_log.h"

#include <pthread.h>

#include <atomic>
#include <exception>
#include <memory>
#include <thread>

#include <Python.h>

#include "backend/base/mutex.h"
#include "backend/c10d/blocking.h"
#include "backend/report/log_queue.h"

namespace straggler {
namespace {

// Never destroyed: a thread that was left behind still uses it.
struct Carrier {
  LogQueue queue;
  Mutex mutex;
  std::unique_ptr<std::thread> thread GUARDED_BY(mutex);  // null: none is needed now
  std::atomic<bool> stuck{false};                         // it was waited for in vain
};

std::atomic<Carrier*> instance{nullptr};

// A forked child starts anew, as the process's session does.
Carrier& carrier() {
  static const int registered = [] {
    instance = new Carrier;
    return pthread_atfork(nullptr, nullptr, [] { instance = new Carrier; });
  }();
  (void)registered;
  return *instance;
}

int levelOf(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return 20;
    case Severity::kWarning:
      return 30;
    default:
      return 40;
  }
}

// Whether Python took the line. Plain C, without destructors: where the interpreter ends while a handler waits for
// something, it unwinds this thread from within, and nothing on the way may then touch Python.
bool emit(int level, const char* text, Py_ssize_t size) {
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject* module = PyImport_ImportModule("torch_straggler._log");
  PyObject* decoded = module != nullptr ? PyUnicode_DecodeUTF8(text, size, "replace") : nullptr;
  PyObject* result = decoded != nullptr ? PyObject_CallMethod(module, "emit", "iO", level, decoded) : nullptr;
  const bool taken = result != nullptr;
  if (!taken) {
    PyErr_Clear();
  }
  Py_XDECREF(result);
  Py_XDECREF(decoded);
  Py_XDECREF(module);
  PyGILState_Release(state);
  return taken;
}

void carry(Carrier& carrier) {
  while (const auto line = carrier.queue.take()) {
    const bool alive = Py_IsInitialized() != 0;
    if (!alive || !emit(levelOf(line->severity), line->text.data(), static_cast<Py_ssize_t>(line->text.size()))) {
      DescriptorLog(2).line(line->severity, line->text);
    }
    carrier.queue.delivered();
  }
}

// The lines that nobody took go out without Python, as far as they can without waiting.
void writeLeft(LogQueue& queue) {
  for (const auto& line : queue.stop()) {
    writeTextNow(2, line.text.ends_with('\n') ? line.text : line.text + "\n");
  }
}

// Joins the thread if it was retired: it is in no handler then, and comes back at once.
void sendHome(Carrier& carrier) REQUIRES(carrier.mutex) {
  if (carrier.thread && carrier.queue.isRetired()) {
    carrier.thread->join();
    carrier.thread.reset();
  }
}

void start(Carrier& carrier) {
  const MutexLock lock(carrier.mutex);
  sendHome(carrier);
  if (carrier.thread) {
    return;
  }
  carrier.queue.resume();
  try {
    carrier.thread = std::make_unique<std::thread>([&carrier] { carry(carrier); });
  } catch (const std::exception&) {
    writeLeft(carrier.queue);  // no thread is to be had
  }
}

// Brings everything out and ends the thread; the next line starts another. One that is in a handler for longer goes on, and
// the next time is not waited for as long: it may well be there for ever.
void finish(Carrier& carrier, Duration patience) {
  const bool out = carrier.queue.retire(carrier.stuck ? patience / 10 : patience);
  carrier.stuck = !out;
  if (out) {
    const MutexLock lock(carrier.mutex);
    sendHome(carrier);
  }
}

}  // namespace

void PythonLog::line(Severity severity, const std::string& text) noexcept {
  try {
    Carrier& to = carrier();
    if (to.queue.push({severity, text})) {
      start(to);
      return;
    }
  } catch (const std::exception&) {  // no memory: said without Python
  }
  DescriptorLog(2).line(severity, text);
}

void PythonLog::flush(Duration patience) noexcept {
  runBlocking([patience] { finish(carrier(), patience); });
}

void PythonLog::stop(Duration patience) noexcept {
  runBlocking([patience] {
    finish(carrier(), patience);
    writeLeft(carrier().queue);
  });
}

std::shared_ptr<PythonLog> pythonLog() {
  static const auto log = std::make_shared<PythonLog>();
  return log;
}

}  // namespace straggler
