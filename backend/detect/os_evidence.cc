#include "backend/detect/os_evidence.h"

#include <algorithm>

namespace straggler {
namespace {

OsEvidence meanOf(const std::vector<RecentOs::Window>& windows, OsEvidence RecentOs::Window::*which) {
  OsEvidence mean;
  for (const OsCounter counter : allOsCounters()) {
    double sum = 0;
    std::size_t known = 0;
    for (const auto& window : windows) {
      if (const auto value = (window.*which)[counter]) {
        sum += *value;
        ++known;
      }
    }
    if (known > 0) {
      mean.set(counter, sum / static_cast<double>(known));
    }
  }
  return mean;
}

}  // namespace

OsEvidence::OsEvidence(const OsCounters& counters, std::size_t steps) : OsEvidence() {
  for (const OsCounter counter : allOsCounters()) {
    if (const auto& value = counters[counter]; value && steps > 0) {
      const double over = isState(counter) ? 1 : static_cast<double>(steps);
      set(counter, static_cast<double>(*value) / (isTime(counter) ? 1e3 : 1) / over);
    }
  }
}

std::optional<double> OsEvidence::operator[](OsCounter counter) const {
  const float value = values_[static_cast<std::size_t>(counter)];
  return value < 0 ? std::nullopt : std::optional<double>(value);
}

bool OsEvidence::empty() const {
  return std::all_of(values_.begin(), values_.end(), [](float value) { return value < 0; });
}

bool OsEvidence::operator==(const OsEvidence& other) const { return values_ == other.values_; }

void RecentOs::add(const Window& window) {
  if (windows_.size() < capacity_) {
    windows_.push_back(window);
  } else {
    windows_[next_] = window;
  }
  next_ = (next_ + 1) % capacity_;
}

void RecentOs::clear() {
  windows_.clear();
  next_ = 0;
}

RecentOs::Window RecentOs::mean() const { return {meanOf(windows_, &Window::rank), meanOf(windows_, &Window::peers)}; }

}  // namespace straggler
