#include "tests/fakes/failing_new.h"

#include <cstdlib>
#include <new>

namespace straggler {
namespace {

struct Progress {
  FailingNew::Plan plan;
  bool active = false;
  std::size_t asked = 0;
  std::size_t failed = 0;
};
thread_local Progress progress;

bool fails(std::size_t size, bool nothrow) noexcept {
  if (!progress.active || size <= progress.plan.larger || (progress.plan.onlyNothrow && !nothrow)) {
    return false;
  }
  const bool fail = progress.asked >= progress.plan.succeed && progress.failed < progress.plan.fail;
  ++progress.asked;
  progress.failed += fail ? 1 : 0;
  return fail;
}

void* allocate(std::size_t size, bool nothrow) noexcept {
  return fails(size, nothrow) ? nullptr : std::malloc(size > 0 ? size : 1);
}

}  // namespace

void FailingNew::begin(Plan plan) { progress = {plan, true, 0, 0}; }
void FailingNew::end() { progress.active = false; }
std::size_t FailingNew::asked() { return progress.asked; }
std::size_t FailingNew::failed() { return progress.failed; }

}  // namespace straggler

void* operator new(std::size_t size) {
  if (void* memory = straggler::allocate(size, false)) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept { return straggler::allocate(size, true); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
