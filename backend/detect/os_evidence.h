// OsEvidence: what the operating system counted for a rank, a step, as numbers to compare: of one rank, or the median of its
// peers. A time is in milliseconds. What was not measured is absent, never zero.
//
// Small: the largest jobs hold one for each rank of each window that waits (window_table.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/observe/os_counters.h"

namespace straggler {

class OsEvidence {
 public:
  OsEvidence() { values_.fill(kAbsent); }
  // Of a window of so many steps.
  OsEvidence(const OsCounters& counters, std::size_t steps);

  std::optional<double> operator[](OsCounter counter) const;
  void set(OsCounter counter, double value) { values_[static_cast<std::size_t>(counter)] = static_cast<float>(value); }
  bool empty() const;

  bool operator==(const OsEvidence& other) const;

 private:
  static constexpr float kAbsent = -1;  // none of them can be below zero

  std::array<float, kOsCounters> values_{};
};

// A rank beside its peers, over its last windows: the oldest is overwritten first. Nothing is held until something is added.
class RecentOs {
 public:
  struct Window {
    OsEvidence rank;
    OsEvidence peers;
  };
  explicit RecentOs(std::size_t capacity) : capacity_(capacity) {}
  void add(const Window& window);
  void clear();
  // The mean over the windows, not the median: ticks and bursts (10 ms of block I/O, a worker's read-ahead) fill some
  // windows and leave others empty.
  Window mean() const;

 private:
  std::size_t capacity_;
  std::size_t next_ = 0;
  std::vector<Window> windows_;
};

}  // namespace straggler
