#include "backend/detect/cusum.h"

#include <algorithm>
#include <cmath>

namespace straggler {

Cusum::Change Cusum::add(double excess, double gate, double noise, double limit, double size) {
  const double deviation = std::max(noise, kNoiseFloor * gate);
  const double variance = deviation * deviation;
  return advance(2 * gate / variance * (excess - gate), std::max(2 * gate, size) / variance * (0.75 * gate - excess),
                 limit);
}

Cusum::Change Cusum::add(bool above, double limit) {
  return above ? advance(limit, -limit, limit) : advance(-limit, kOver / 2, limit);
}

Cusum::Change Cusum::advance(double late, double relief, double limit) {
  const double most = limit / 3;
  score = std::clamp(score + std::clamp(late, -most, most), 0.0, 2 * limit);
  if (!on) {
    over = 0;
    // A little less than the limit, so that three times a third of it is enough.
    return score >= limit * (1 - 1e-9) ? Change::kOn : Change::kNone;
  }
  over = std::max(0.0, over + std::clamp(relief, -kOver / 2, kOver / 2));
  return over >= kOver ? Change::kOff : Change::kNone;
}

double Cusum::confidence(double ranks) const { return std::clamp(1 - ranks * std::exp(-score), 0.0, 1.0); }

}  // namespace straggler
