#include "tests/fakes/counting_new.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace straggler {
namespace {

struct Count {
  std::ptrdiff_t live = 0;
  std::ptrdiff_t peak = 0;
  std::size_t allocations = 0;
};
thread_local Count count;

std::ptrdiff_t sizeOf(void* block) {
  return static_cast<std::ptrdiff_t>(malloc_usable_size(block) + sizeof(std::size_t));
}

void* allocate(std::size_t size) noexcept {
  void* block = std::malloc(size > 0 ? size : 1);
  if (block != nullptr) {
    count.live += sizeOf(block);
    count.peak = std::max(count.peak, count.live);
    ++count.allocations;
  }
  return block;
}

void release(void* block) noexcept {
  if (block != nullptr) {
    count.live -= sizeOf(block);
    std::free(block);
  }
}

}  // namespace

void CountingNew::begin() { count = {}; }
std::ptrdiff_t CountingNew::liveBytes() { return count.live; }
std::ptrdiff_t CountingNew::peakBytes() { return count.peak; }
std::size_t CountingNew::allocations() { return count.allocations; }

}  // namespace straggler

void* operator new(std::size_t size) {
  void* block = straggler::allocate(size);
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  return block;
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept { return straggler::allocate(size); }
void operator delete(void* block) noexcept { straggler::release(block); }
void operator delete(void* block, std::size_t /*size*/) noexcept { straggler::release(block); }
void operator delete(void* block, const std::nothrow_t& /*tag*/) noexcept { straggler::release(block); }
