// Rules: when a rank counts as late in a window. The default compares its self time with its peers'; the others are the
// rules of thumb that people know, over each rank's own time per iteration (waits excluded: under data parallelism the
// wall time of a step is the same on all ranks, so none of them could ever fire on it).
//
//   self_time       excess over the peers' median above the gate (detector.h)
//   mean_multiple   own time above `multiplier` times the mean of all ranks
//   median          own time above `multiplier` times the median of all ranks
//   moving_average  own time above `multiplier` times the mean of the rank's own last 10 windows before it became late
//
// A rule of thumb cannot see everything: the rank itself is part of the mean. With W ranks of equal time t and one of time
// x, x > m (x + (W - 1) t) / W holds for x > t m (W - 1) / (W - m), and for no x where W <= m: two ranks and multiplier 2
// never name anybody.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace straggler {

enum class Rule : std::uint8_t { kSelfTime, kMeanMultiple, kMovingAverage, kMedian };
std::string_view toString(Rule rule);
std::optional<Rule> ruleFromString(std::string_view text);

// The smallest excess, as a multiple of the other ranks' own time, from which on one late rank of `ranks` is seen; nothing
// if the rule can never fire. For the rules other than self_time.
//   mean_multiple, 2.0, 4 ranks  ->  2.0 (a rank must take three times as long)
std::optional<double> smallestExcess(Rule rule, double multiplier, std::size_t ranks);

// What the rule can see in a job of so many ranks: a sentence, said at the start.
std::string describe(Rule rule, double multiplier, std::size_t ranks, double absoluteGateMs, double relativeGate);

// What a rank's own time is compared with, by position, for mean_multiple and median.
double reference(Rule rule, const std::vector<double>& ownMs);

}  // namespace straggler
