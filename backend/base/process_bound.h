// ProcessBound: knows whether it is still in the process that made it. In a forked child the threads of the parent do not
// exist, and the locks that they held at the fork stay held: what belongs to the parent must not be touched there.
#pragma once

#include <atomic>
#include <cstdint>

namespace straggler {

class ProcessBound {
 public:
  ProcessBound();

  // False in a forked child. Costs one load.
  bool here() const noexcept { return bornAfter_ == forks_.load(std::memory_order_relaxed); }

 private:
  static std::atomic<std::uint64_t> forks_;  // how many forks lie between this process and the first

  std::uint64_t bornAfter_;
};

}  // namespace straggler
