// FailingNew: memory that runs out on one thread, at a place that the test chooses. failing_new.cc replaces the operator new
// of the whole program, so it is linked only into test programs that want it.
#pragma once

#include <cstddef>
#include <limits>

namespace straggler {

class FailingNew {
 public:
  struct Plan {
    std::size_t succeed = 0;   // so many allocations first
    std::size_t fail = kAll;   // then so many fail, and all after them succeed
    std::size_t larger = 0;    // only those of more bytes count
    bool onlyNothrow = false;  // only those that give null instead of throwing count
  };
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  // For the calling thread, until the object goes. One at a time.
  explicit FailingNew(Plan plan) { begin(plan); }
  ~FailingNew() { end(); }
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;

  // The same without an end, for a thread that the test does not see the end of.
  static void begin(Plan plan);
  static void end();

  // Since begin(), on the calling thread: allocations that counted, and those of them that failed.
  static std::size_t asked();
  static std::size_t failed();
};

}  // namespace straggler
