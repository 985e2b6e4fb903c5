// Blocking: runs what may wait for another thread. A thread of Python's must let go of the interpreter lock for it, or
// Python's other threads stand still; how, is told once by the Python module. Without it, the work is simply run.
#pragma once

#include <c10/util/FunctionRef.h>

namespace straggler {

using BlockingGuard = void (*)(c10::function_ref<void()> work);

// Called once, before the first backend is made.
void setBlockingGuard(BlockingGuard guard) noexcept;

void runBlocking(c10::function_ref<void()> work);

}  // namespace straggler
