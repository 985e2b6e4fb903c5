// Suspicion: what the detector knows of one rank between windows. A plain value; the detector decides, this adds up.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/detect/comparison.h"
#include "backend/detect/cusum.h"
#include "backend/detect/verdict.h"

namespace straggler {

// How often a rank was the last arriver so far, of the operations compared.
struct ArrivalCounts {
  std::uint64_t compared = 0;
  std::uint64_t last = 0;
  double moreLikely =
      0;  // sum over them of W / (ranks of the group) - 1, in a session of W ranks: of fewer, one is last more often
};

// The last few values of a rank or of the job, the oldest overwritten first.
class Recent {
 public:
  explicit Recent(std::size_t capacity) : capacity_(capacity) {}
  void add(double value);
  void add(const std::optional<double>& value) {
    if (value) {
      add(*value);
    }
  }
  void clear() {
    values_.clear();
    next_ = 0;
  }
  std::size_t size() const { return values_.size(); }
  // Nothing where there are fewer than `atLeast`.
  std::optional<double> median(std::size_t atLeast = 1) const;

 private:
  std::size_t capacity_;
  std::size_t next_ = 0;
  std::vector<double> values_;
};

struct Suspicion {
  static constexpr std::size_t kRecent = 5;     // windows
  static constexpr std::size_t kEvidence = 10;  // windows

  Cusum test;
  std::int64_t sinceStep = 0;  // of the excess that the test is about
  std::size_t windows = 0;     // since then
  std::size_t above = 0;       // of them, above the gate
  Recent excessMs{kRecent};    // of the last windows, whatever the test says
  double toldMs = 0;           // excess, when it was last told
  bool contradicted = false;   // the arrivals say otherwise

  // Takes a window in which the rank told. `change` is what the test said of it.
  void add(const RankComparison& rank, const WindowComparison& window, double gateMs, bool isAbove,
           const ArrivalCounts& arrivals);

  // The excess is over.
  void end() {
    test = {};
    windows = 0;
    toldMs = 0;
  }

  // Since the excess began, the parts of the excess in the median over its last windows; what the operating system counted
  // in the mean over them.
  Evidence evidence(const ArrivalCounts& now, std::size_t ranks) const;
  // How likely it is by chance that the rank is the last arriver, over the operations since then. `ranks`: of the session.
  double lastChance(const ArrivalCounts& now, std::size_t ranks) const;
  // As the evidence is: of the means over a window's steps.
  double meanExcessMs() const;

 private:
  void begin(const RankComparison& rank, const WindowComparison& window, double gateMs);

  // Of the means over a window's steps.
  Recent excess_{kEvidence};
  Recent input_{kEvidence};
  Recent cpu_{kEvidence};
  Recent runDelay_{kEvidence};
  RecentOs os_{kEvidence};
  ArrivalCounts before_;  // when the excess began
  ArrivalCounts seen_;    // at the last window
};

}  // namespace straggler
