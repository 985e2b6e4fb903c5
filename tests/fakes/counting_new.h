// CountingNew: what the calling thread has allocated. counting_new.cc replaces the operator new of the whole program, so
// it is linked only into programs that want it.
//
// A block counts with what the allocator set aside for it (malloc_usable_size) and the word before it, so what is counted
// is what the process pays, and not what was asked for.
#pragma once

#include <cstddef>

namespace straggler {

class CountingNew {
 public:
  // From now on; what is freed of what was allocated before counts as less than nothing.
  static void begin();

  // Since begin(), on the calling thread.
  static std::ptrdiff_t liveBytes();
  static std::ptrdiff_t peakBytes();
  static std::size_t allocations();
};

}  // namespace straggler
