// The few statistics that the detector needs: pure functions, and a series whose memory is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace straggler {

// The q-quantile, 0 <= q <= 1, by linear interpolation between order statistics (Hyndman and Fan 1996, type 7). Nothing
// for no values.
std::optional<double> quantile(std::vector<double> values, double q);

// For each value, the median of all the others. With fewer than two values there are no others: empty.
//   {1, 2, 10}  ->  {6, 5.5, 1.5}
std::vector<double> mediansOfOthers(const std::vector<double>& values);

// P(X >= successes) for X ~ Binomial(trials, p), 0 < p < 1.
double binomialTail(std::uint64_t successes, std::uint64_t trials, double p);

// Number and mean of values that are not kept.
class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  std::size_t count() const { return count_; }
  std::optional<double> mean() const {
    return count_ > 0 ? std::optional(sum_ / static_cast<double>(count_)) : std::nullopt;
  }

 private:
  std::size_t count_ = 0;
  double sum_ = 0;
};

// A series of bounded memory: when it is full, every other value is dropped and from then on only one in `stride()` is
// kept, so what is left is spread evenly over all that was added. Count, sum and maximum are of all values.
class ThinnedSeries {
 public:
  explicit ThinnedSeries(std::size_t capacity = 512) : capacity_(capacity) {}

  void add(double value);

  const std::vector<float>& values() const { return values_; }
  std::size_t stride() const { return stride_; }
  std::size_t count() const { return count_; }
  double sum() const { return sum_; }
  std::optional<double> max() const { return count_ > 0 ? std::optional(max_) : std::nullopt; }
  std::optional<double> mean() const {
    return count_ > 0 ? std::optional(sum_ / static_cast<double>(count_)) : std::nullopt;
  }
  std::optional<double> quantile(double q) const;

 private:
  std::size_t capacity_;
  std::size_t stride_ = 1;
  std::size_t count_ = 0;
  double sum_ = 0;
  double max_ = 0;
  std::vector<float> values_;
};

}  // namespace straggler
