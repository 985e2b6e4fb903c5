#include "backend/detect/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace straggler {

std::optional<double> quantile(std::vector<double> values, double q) {
  if (values.empty()) {
    return std::nullopt;
  }
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), at, values.end());
  const double low = *at;
  if (below + 1 == values.size()) {
    return low;
  }
  const double high = *std::min_element(at + 1, values.end());
  return low + (position - static_cast<double>(below)) * (high - low);
}

std::vector<double> mediansOfOthers(const std::vector<double>& values) {
  if (values.size() < 2) {
    return {};
  }
  const std::size_t others = values.size() - 1;
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> medians(values.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    // The i-th of the others, in order: those at or behind `place` move up by one.
    const auto other = [&](std::size_t i) { return values[order[i < place ? i : i + 1]]; };
    medians[order[place]] = (other((others - 1) / 2) + other(others / 2)) / 2;
  }
  return medians;
}

double binomialTail(std::uint64_t successes, std::uint64_t trials, double p) {
  const auto n = static_cast<double>(trials);
  const auto probability = [n, p](double k) {
    return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(p) +
                    (n - k) * std::log1p(-p));
  };
  // Away from the mean the terms only shrink, so the shorter tail is summed, until they add nothing.
  constexpr double kNothing = 1e-18;
  double tail = 0;
  const auto first = static_cast<double>(successes);
  if (first > n * p) {
    for (double k = first, term = 1; k <= n && term > kNothing * tail; ++k) {
      tail += term = probability(k);
    }
    return std::min(tail, 1.0);
  }
  for (double k = first - 1, term = 1; k >= 0 && term > kNothing * tail; --k) {
    tail += term = probability(k);
  }
  return std::clamp(1 - tail, 0.0, 1.0);
}

void ThinnedSeries::add(double value) {
  if (count_ % stride_ == 0) {
    if (values_.size() == capacity_) {
      for (std::size_t i = 0; 2 * i < values_.size(); ++i) {
        values_[i] = values_[2 * i];
      }
      values_.resize((values_.size() + 1) / 2);
      stride_ *= 2;
    }
    if (count_ % stride_ == 0) {
      values_.push_back(static_cast<float>(value));
    }
  }
  max_ = count_ == 0 ? value : std::max(max_, value);
  sum_ += value;
  ++count_;
}

std::optional<double> ThinnedSeries::quantile(double q) const {
  return straggler::quantile(std::vector<double>(values_.begin(), values_.end()), q);
}

}  // namespace straggler
