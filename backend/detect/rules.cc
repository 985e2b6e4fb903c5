#include "backend/detect/rules.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "backend/base/format.h"
#include "backend/detect/statistics.h"

namespace straggler {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"self_time", "mean_multiple", "moving_average", "median"};

std::string percent(double share) { return fixed(100 * share, 0) + " %"; }

}  // namespace

std::string_view toString(Rule rule) { return kNames.at(static_cast<std::size_t>(rule)); }

std::optional<Rule> ruleFromString(std::string_view text) {
  const auto* name = std::find(kNames.begin(), kNames.end(), text);
  return name == kNames.end() ? std::nullopt : std::optional(static_cast<Rule>(name - kNames.begin()));
}

std::optional<double> smallestExcess(Rule rule, double multiplier, std::size_t ranks) {
  const auto count = static_cast<double>(ranks);
  switch (rule) {
    case Rule::kMeanMultiple:
      return count > multiplier ? std::optional(multiplier * (count - 1) / (count - multiplier) - 1) : std::nullopt;
    case Rule::kMedian:
      // The median of two is their mean; of more, it is one of the others.
      if (ranks > 2) {
        return multiplier - 1;
      }
      return multiplier < 2 ? std::optional(multiplier / (2 - multiplier) - 1) : std::nullopt;
    default:
      return multiplier - 1;
  }
}

std::string describe(Rule rule, double multiplier, std::size_t ranks, double absoluteGateMs, double relativeGate) {
  std::string text = "rule " + std::string(toString(rule));
  if (rule == Rule::kSelfTime) {
    return text + ": a rank is named from an excess of " + percent(relativeGate) + " of the step on, at least " +
           fixed(absoluteGateMs, 1) + " ms, and above the noise";
  }
  text += " with multiplier " + fixed(multiplier, 2);
  const auto smallest = smallestExcess(rule, multiplier, ranks);
  if (!smallest) {
    return text + " cannot name anybody with " + std::to_string(ranks) +
           " ranks, since the late rank is part of what it is compared with; set STRAGGLER_MULTIPLIER below 2, or "
           "STRAGGLER_RULE=self_time";
  }
  const std::string than = rule == Rule::kMovingAverage ? "its own past" : "the others";
  return text + ": with " + std::to_string(ranks) + " ranks, the smallest excess that it can see is " +
         percent(*smallest) + " more own time than " + than;
}

double reference(Rule rule, const std::vector<double>& ownMs) {
  if (rule == Rule::kMedian) {
    return quantile(ownMs, 0.5).value_or(0);
  }
  return ownMs.empty() ? 0 : std::accumulate(ownMs.begin(), ownMs.end(), 0.0) / static_cast<double>(ownMs.size());
}

}  // namespace straggler
