#include "backend/c10d/blocking.h"

#include <atomic>

namespace straggler {
namespace {

std::atomic<BlockingGuard> current{nullptr};

}  // namespace

void setBlockingGuard(BlockingGuard guard) noexcept { current = guard; }

void runBlocking(c10::function_ref<void()> work) {
  if (const BlockingGuard guard = current) {
    guard(work);
  } else {
    work();
  }
}

}  // namespace straggler
