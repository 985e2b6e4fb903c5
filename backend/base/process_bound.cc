#include "backend/base/process_bound.h"

#include <pthread.h>

namespace straggler {

std::atomic<std::uint64_t> ProcessBound::forks_{0};

ProcessBound::ProcessBound() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks_; });
  (void)registered;
  bornAfter_ = forks_;
}

}  // namespace straggler
