#include "backend/detect/option_table.h"

#include <array>

namespace straggler {
namespace {

using Options = DetectorOptions;

bool setRule(Options& options, std::string_view word) {
  const auto rule = ruleFromString(word);
  options.rule = rule.value_or(options.rule);
  return rule.has_value();
}

std::string_view ruleOf(const Options& options) { return toString(options.rule); }

constexpr std::array<Field<Options>, 10> kTable = {{
    {"rule", ChoiceMember<Options>{"self_time, mean_multiple, moving_average, or median", setRule, ruleOf}, 0, 0, "",
     "the rule by which a rank is named"},
    {"multiplier", &Options::multiplier, 1.01, 1000, "times", "used by the other rules than self_time"},
    {"absolute_gate_ms", &Options::absoluteGateMs, 0.001, 1e6, "ms", "smaller excess of a step is nobody's concern"},
    {"relative_gate", &Options::relativeGate, 0, 1, "of the step", "the same, as a share"},
    {"noise_gate", &Options::noiseGate, 0, 100, "times the noise", "the same, as a multiple of the noise"},
    {"false_alarm_windows", &Options::falseAlarmWindows, 10, 1e12, "windows",
     "to a false alarm of the sequential test, over all ranks"},
    {"persistence", &Options::persistence, 0, 1, "of the windows",
     "so many since the excess began must be above the gate"},
    {"change_factor", &Options::changeFactor, 1.01, 1000, "times", "an excess that grew or shrank by it is told again"},
    {"change_windows", &Options::changeWindows, 1, 1e6, "windows", "between two such lines"},
    {"significance", &Options::significance, 0, 1, "", "of arrivals that contradict the self time, over all ranks"},
}};

}  // namespace

std::span<const Field<DetectorOptions>> detectorFields() { return kTable; }

}  // namespace straggler
