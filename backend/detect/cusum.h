// Cusum: Page's CUSUM, the sequential test that says soonest, at a given rate of false alarms, that a mean has moved
// (E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954; optimal: G. Moustakides, Annals of Statistics 14,
// 1986).
//
// Each window adds the log likelihood ratio of "mean 2 g" against "mean 0" for its excess x, with noise s:
//
//   w(x) = 2 g / s^2 * (x - g)            never below zero in sum, never more than a third of the limit at once
//
// so windows above the gate g speak for it and those below against it, and at least three are needed. The limit h is
// ln(N): without a change, N windows pass on average before a false alarm. When it is on, with an excess of E, the test runs
// the other way: a window adds w'(x) = max(2 g, E) / s^2 * (3/4 g - x), at most half of kOver, and at kOver it is off again.
// Between 3/4 g and g nothing changes (hysteresis).
//
// The noise counts as at least kNoiseFloor times the gate: a machine does worse things than it did while it was watched.
//
//   g 1.1 ms, s 0.77, h 13: excess of 6 ms adds 4.3 (a third of h): on after 3 windows. 2 ms: 3.3, after 4.
#pragma once

#include <cstdint>

namespace straggler {

struct Cusum {
  static constexpr double kNoiseFloor = 0.7;  // of the gate
  static constexpr double kOver = 6;

  double score = 0;  // evidence that the excess began
  double over = 0;   // evidence that it ended
  bool on = false;

  enum class Change : std::uint8_t { kNone, kOn, kOff };

  // Takes a window's excess; `size` is the excess that it went on with. kOn is only proposed: the caller sets `on`, if what
  // it knows beside agrees.
  Change add(double excess, double gate, double noise, double limit, double size = 0);
  // The same for a rule that says only whether the window is above.
  Change add(bool above, double limit);

  // 1 less the chance of so high a score by noise, for one of `ranks`.
  double confidence(double ranks) const;

 private:
  Change advance(double late, double relief, double limit);
};

}  // namespace straggler
