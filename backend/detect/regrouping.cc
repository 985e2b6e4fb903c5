#include "backend/detect/regrouping.h"

#include <cmath>
#include <utility>

namespace straggler {
namespace {

// Counts are added up; of what is a state the mean over the steps is taken.
bool isState(std::size_t evidence) { return evidence >= 3 && straggler::isState(static_cast<OsCounter>(evidence - 3)); }

}  // namespace

// Where each of them is.
template <class Window>
auto Regrouping::evidenceOf(Window& window) {
  std::array<decltype(&window.inputUs), kEvidence> places{&window.inputUs, &window.cpuUs, &window.runDelayUs};
  for (const OsCounter counter : allOsCounters()) {
    places.at(3 + static_cast<std::size_t>(counter)) = &window.os[counter];
  }
  return places;
}

Regrouping::Building Regrouping::begin(std::int64_t step) {
  Building building;
  building.window.firstStep = step;
  building.evidence.fill(0.0);
  return building;
}

void Regrouping::addStep(Building& building, const StepWindow& recorded, std::size_t place) {
  const auto steps = static_cast<double>(recorded.selfUs.size());
  building.window.foundBy = recorded.foundBy;
  building.window.selfUs.push_back(recorded.selfUs[place]);
  building.durationUs += static_cast<double>(recorded.durationUs) / steps;
  const auto totals = evidenceOf(recorded);
  for (std::size_t i = 0; i < kEvidence; ++i) {
    const auto& total = *totals.at(i);
    auto& sum = building.evidence.at(i);
    const double over = isState(i) ? 1 : steps;
    sum = total && sum ? std::optional(*sum + static_cast<double>(*total) / over) : std::nullopt;
  }
}

StepWindow Regrouping::finished(const Building& building) {
  const auto rounded = [](double value) { return static_cast<std::uint64_t>(std::round(value)); };
  StepWindow window = building.window;
  window.durationUs = rounded(building.durationUs);
  const auto steps = static_cast<double>(window.selfUs.size());
  const auto totals = evidenceOf(window);
  for (std::size_t i = 0; i < kEvidence; ++i) {
    const auto& sum = building.evidence.at(i);
    *totals.at(i) = sum ? std::optional(rounded(*sum / (isState(i) ? steps : 1))) : std::nullopt;
  }
  return window;
}

std::vector<StepWindow> Regrouping::add(std::size_t position, const StepWindow& recorded) {
  std::vector<StepWindow> complete;
  auto& building = building_[position];
  for (std::size_t place = 0; place < recorded.selfUs.size(); ++place) {
    const std::int64_t step = recorded.firstStep + static_cast<std::int64_t>(place);
    if (building && step != building->window.firstStep + static_cast<std::int64_t>(building->window.selfUs.size())) {
      building.reset();
      ++leftOut_;
    }
    if (!building && step % steps_ == 0) {
      building = begin(step);
    }
    if (!building) {
      continue;  // its window's beginning is missing
    }
    addStep(*building, recorded, place);
    if ((step + 1) % steps_ == 0) {
      complete.push_back(finished(*building));
      building.reset();
    }
  }
  return complete;
}

std::optional<StepWindow> Regrouping::last(std::size_t position) {
  const auto building = std::exchange(building_[position], std::nullopt);
  return building ? std::optional(finished(*building)) : std::nullopt;
}

}  // namespace straggler
