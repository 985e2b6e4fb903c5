// TwoClocks: the traffic of two ranks on two clocks, and the truth about them. Time is that of the reference clock, in ms; the
// other clock is behind it by offset(time). A seed makes a run repeat.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <utility>

#include "backend/detect/clock_offset.h"
#include "tests/fakes/operations.h"

namespace straggler {

class TwoClocks {
 public:
  struct Traffic {
    double periodMs = 16;    // of the operations, in the mean
    double delayMs = 0.2;    // from the last arrival to a completion, in the mean
    double jitterMs = 1;     // of an arrival, in the mean
    double otherLateMs = 0;  // the other rank arrives so much later; less than 0: earlier
    double lost = 0;         // share of the operations of which nothing is told
  };

  TwoClocks(unsigned seed, std::function<double(double)> offset, Traffic traffic)
      : offset_(std::move(offset)), traffic_(traffic), random_(seed) {}
  TwoClocks(unsigned seed, std::function<double(double)> offset) : TwoClocks(seed, std::move(offset), Traffic{}) {}

  double now() const { return now_; }
  Duration offset(double time) const { return ms(offset_(time)); }
  Instant other(double time) const { return at(time) - offset(time); }
  double draw(double mean) { return std::exponential_distribution<double>(1 / mean)(random_); }
  void wait(double milliseconds) { now_ += milliseconds; }

  // The next operation; now() is the moment in which the other rank has completed it. Nothing if it is lost.
  std::optional<Crossing> next() {
    const double begin = now_ + draw(traffic_.periodMs);
    const double arrivalQ = begin + draw(traffic_.jitterMs) + std::max(0.0, -traffic_.otherLateMs);
    const double arrivalR = begin + draw(traffic_.jitterMs) + std::max(0.0, traffic_.otherLateMs);
    const double last = std::max(arrivalQ, arrivalR) + 0.01;
    const double completedQ = last + draw(traffic_.delayMs);
    now_ = last + draw(traffic_.delayMs);
    const bool lost = std::bernoulli_distribution(traffic_.lost)(random_);
    const Crossing crossing{at(arrivalQ), other(now_), other(arrivalR), at(completedQ)};
    return lost ? std::nullopt : std::optional(crossing);
  }

 private:
  std::function<double(double)> offset_;
  Traffic traffic_;
  std::mt19937 random_;
  double now_ = 1000;
};

// ---- Offsets ----

inline std::function<double(double)> steadyDrift(double offsetMs, double ppm) {
  return [=](double time) { return offsetMs + time * ppm * 1e-6; };
}

// Between +ppm and -ppm, gently, once in `periodMs`.
inline std::function<double(double)> swingingDrift(double offsetMs, double ppm, double periodMs) {
  const double omega = 2 * std::acos(-1.0) / periodMs;
  return [=](double time) { return offsetMs + ppm * 1e-6 / omega * std::sin(omega * time); };
}

// +ppm for half of the period, then -ppm, at once.
inline std::function<double(double)> switchedDrift(double offsetMs, double ppm, double periodMs) {
  return [=](double time) {
    const double phase = std::fmod(time, periodMs);
    return offsetMs + ppm * 1e-6 * std::min(phase, periodMs - phase);
  };
}

inline std::function<double(double)> leap(double beforeMs, double afterMs, double when) {
  return [=](double time) { return time < when ? beforeMs : afterMs; };
}

}  // namespace straggler
