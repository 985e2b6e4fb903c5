// StepHistory: what the last steps of a rank say about whether filling slots is worth it.
//
// - A lead ends at the next operation that nobody can be spared in. Where one comes in every step (a loss that is reduced, a
//   norm, an operation of another group), the others wait there anyway: filling gains nothing and costs staleness.
// - The same is so of one rank alone if it is the root of a broadcast in every step (rank 0, whose buffers all take).
// - A rank that is as far behind as it may be, step after step, is persistent: slow, not late. It still has to do every step,
//   so no scheme that keeps all steps ends sooner than it does. Its slots are left to it for a while; each time that this is
//   found again, for twice as long.
//
// A step is what lies between two arrivals at the first bucket.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace straggler {

class StepHistory {
 public:
  static constexpr std::size_t kSteps = 32;        // that are looked at
  static constexpr std::size_t kMinimum = 8;       // below, nothing is said of the program
  static constexpr std::uint64_t kLeftAlone = 64;  // steps, the first time
  static constexpr std::uint64_t kLeftAloneAtMost = 1U << 14U;

  // An operation that no rank can be spared in, by its name for people; one that this rank alone cannot be.
  void exact(const std::string& name) { exact_ = name; }
  void rooted(const std::string& name) { rooted_ = name; }
  // The main thread arrives at the first bucket; `atBound`: no further slot may be filled for it.
  void step(bool atBound);

  // The operation, if more than half of the steps have one.
  std::optional<std::string> exactInEveryStep() const { return inEveryStep(&Step::exact); }
  std::optional<std::string> rootedInEveryStep() const { return inEveryStep(&Step::rooted); }
  bool isPersistent() const { return leftAlone_ > 0; }

 private:
  struct Step {
    std::string exact;
    std::string rooted;
    bool atBound = false;
  };

  std::optional<std::string> inEveryStep(std::string Step::*name) const;

  std::deque<Step> steps_;
  std::string exact_;  // of the step that is running; empty: none
  std::string rooted_;
  std::uint64_t leftAlone_ = 0;  // steps to come
  std::uint64_t nextTime_ = kLeftAlone;
};

}  // namespace straggler
