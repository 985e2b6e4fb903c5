// Known faults, one a function, loaded into Python as the module _C is: a sanitizer that does not report them there would
// not report ours either.
#include <cstdlib>
#include <thread>

#define PLANTED extern "C" __attribute__((visibility("default"))) int

namespace {

int shared = 0;

}  // namespace

// Two threads write without a lock.
PLANTED race() {
  std::thread other([] { ++shared; });
  ++shared;
  other.join();
  return shared;
}

// A byte beyond the end.
PLANTED overflow() {
  auto* bytes = static_cast<volatile char*>(std::malloc(8));
  bytes[8] = 1;
  std::free(const_cast<char*>(bytes));
  return 0;
}

PLANTED useAfterFree() {
  auto* bytes = static_cast<volatile char*>(std::malloc(8));
  std::free(const_cast<char*>(bytes));
  return bytes[0];
}

// A sum that its type cannot hold.
PLANTED undefined() {
  volatile int large = 0x7fffffff;
  return large + 1;
}
