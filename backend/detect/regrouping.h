// Regrouping: windows of another length from the windows that a job recorded, rank by rank.
//
// Self time is recorded by step, so it is regrouped exactly. All else is known as a sum over a window; each of its steps
// counts with the mean. So longer windows have exact sums where they are made of whole ones, and shorter ones the means of
// the window that they were cut from, and are as blind to what happened within it.
//
//   recorded 10, asked 25: steps 0-9, 10-19, 20-29  ->  0-24; 25-29 wait for what follows
//
// A window that lacks a step at its beginning or in its middle is left out and counted: a rank that thinned its windows
// gives none that is longer than it recorded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/exchange/messages.h"

namespace straggler {

class Regrouping {
 public:
  Regrouping(std::size_t ranks, std::int64_t steps) : building_(ranks), steps_(steps) {}

  // Takes a rank's next window; gives those that are complete now.
  std::vector<StepWindow> add(std::size_t position, const StepWindow& recorded);

  // What is left of a rank's last window; nothing where nothing is.
  std::optional<StepWindow> last(std::size_t position);

  std::uint64_t leftOut() const { return leftOut_; }

 private:
  // Of a window: its times, and what the operating system counted.
  static constexpr std::size_t kEvidence = 3 + kOsCounters;
  template <class Window>
  static auto evidenceOf(Window& window);

  // A window of which the first steps are known. What one of them lacks, all of it lacks.
  struct Building {
    StepWindow window;
    double durationUs = 0;
    std::array<std::optional<double>, kEvidence> evidence;
  };
  static Building begin(std::int64_t step);
  static void addStep(Building& building, const StepWindow& recorded, std::size_t place);
  static StepWindow finished(const Building& building);

  std::vector<std::optional<Building>> building_;  // by position
  std::int64_t steps_;
  std::uint64_t leftOut_ = 0;
};

}  // namespace straggler
