#include "backend/base/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cmath>
#include <string_view>

#include "backend/base/format.h"

namespace straggler {
namespace {

constexpr std::string_view kPrefix = "STRAGGLER_";

struct Declaration {
  std::string_view name;
  std::string_view defaultValue;  // empty: unset
  std::string_view type;
  std::string_view unit;
  std::string_view allowed;
  std::string_view text;
  bool (*accept)(Settings&, const std::string& value);
};

// All of it is the number.
template <class Number>
bool readWhole(const std::string& value, Number& number) {
  const auto* end = value.data() + value.size();
  const auto [last, error] = std::from_chars(value.data(), end, number);
  return error == std::errc() && last == end;
}

bool acceptDirectory(Settings& settings, const std::string& value) {
  settings.directory = value;
  return !value.empty();
}

bool acceptWindow(Settings& settings, const std::string& value) {
  return readWhole(value, settings.window) && settings.window >= 1 && settings.window <= kMaxWindow;
}

bool acceptRule(Settings& settings, const std::string& value) {
  settings.rule = value;
  return value == "self_time" || value == "mean_multiple" || value == "moving_average" || value == "median";
}

bool acceptMultiplier(Settings& settings, const std::string& value) {
  return readWhole(value, settings.multiplier) && std::isfinite(settings.multiplier) && settings.multiplier > 1;
}

bool acceptMitigate(Settings& settings, const std::string& value) {
  settings.mitigate = value;
  return value == "off" || value == "carry" || value == "drop";
}

bool acceptStaleness(Settings& settings, const std::string& value) {
  return readWhole(value, settings.staleness) && settings.staleness >= 1 && settings.staleness <= kMaxStaleness;
}

bool acceptGrace(Settings& settings, const std::string& value) {
  double milliseconds = 0;
  if (value == "auto") {
    settings.graceMs.reset();
    return true;
  }
  const bool valid = readWhole(value, milliseconds) && milliseconds >= 0 && milliseconds <= kMaxGraceMs;
  settings.graceMs = milliseconds;
  return valid;
}

bool acceptQuorum(Settings& settings, const std::string& value) {
  double& quorum = settings.quorum.value;
  return readWhole(value, quorum) && std::isfinite(quorum) && quorum > 0 && quorum <= INT_MAX &&
         (quorum < 1 || quorum == std::floor(quorum));
}

// Read, and checked, by Python.
bool acceptForceParticipation(Settings& /*settings*/, const std::string& value) { return !value.empty(); }

// Names separated by commas, each "gloo" or "nccl".
bool acceptIntercept(Settings& /*settings*/, const std::string& value) {
  std::string_view rest = value;
  while (true) {
    const auto comma = rest.find(',');
    const auto name = rest.substr(0, comma);
    if (name != "gloo" && name != "nccl") {
      return false;
    }
    if (comma == std::string_view::npos) {
      return true;
    }
    rest.remove_prefix(comma + 1);
  }
}

// The rules have a grammar of their own, checked where they are put into force.
bool acceptInject(Settings& /*settings*/, const std::string& /*value*/) { return true; }

constexpr std::array<Declaration, 11> kTable = {{
    {"DIR", "", "path", "", "a folder that can be written", "where records go; unset: lines on standard error only",
     acceptDirectory},
    {"INTERCEPT", "", "names", "", "gloo, nccl, or gloo,nccl", "backend names that resolve to the wrapped backend",
     acceptIntercept},
    {"INJECT", "", "text", "", "see straggler run --help", "delays put into the training job, for trials",
     acceptInject},
    {"WINDOW", "10", "whole number", "steps", "a whole number from 1 to 1000", "steps a window", acceptWindow},
    {"RULE", "self_time", "choice", "", "self_time, mean_multiple, moving_average, or median",
     "the rule by which a rank is named", acceptRule},
    {"MULTIPLIER", "2.0", "number", "times", "a number above 1", "used by the other rules than self_time",
     acceptMultiplier},
    {"MITIGATE", "off", "choice", "", "off, carry, or drop",
     "whether a late rank holds up the others: its late gradients are carried to a later step, or dropped",
     acceptMitigate},
    {"STALENESS", "8", "whole number", "steps", "a whole number from 1 to 1024",
     "steps that a rank may be behind the others, with MITIGATE", acceptStaleness},
    {"GRACE_MS", "auto", "number", "ms", "auto, or a number from 0 to 3600000",
     "how long a late rank is waited for, with MITIGATE; auto: as measured", acceptGrace},
    {"QUORUM", "0.5", "number", "ranks", "a whole number of ranks from 1 to the size of the group, or a share below 1",
     "ranks that have to wait before a late one is left behind, with MITIGATE", acceptQuorum},
    {"FORCE_PARTICIPATION", "", "path", "", "a participation-rank-*.jsonl file, or the folder of a recorded run",
     "a recorded run whose late ranks are late again, with MITIGATE", acceptForceParticipation},
}};

std::string allowedNames() {
  std::string names;
  for (const auto& row : kTable) {
    names += names.empty() ? "" : ", ";
    names += std::string(kPrefix) + std::string(row.name);
  }
  return names;
}

std::optional<std::string> find(const Environment& environment, std::string_view name) {
  const auto full = std::string(kPrefix) + std::string(name);
  const auto entry =
      std::find_if(environment.begin(), environment.end(), [&](const auto& e) { return e.first == full; });
  return entry == environment.end() ? std::nullopt : std::optional(entry->second);
}

}  // namespace

int QuorumSetting::of(int ranks) const {
  if (value < 1) {
    return std::max(1, static_cast<int>(std::ceil(value * ranks)));
  }
  if (value > ranks) {
    throw SettingsError("STRAGGLER_QUORUM='" + fixed(value, 0) + "' is more than the ranks of the group; allowed: " +
                        "a whole number of ranks from 1 to " + std::to_string(ranks) + ", or a share below 1");
  }
  return static_cast<int>(value);
}

Environment readEnvironment() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (text.starts_with(kPrefix) && equals != std::string_view::npos) {
      result.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return result;
}

Settings parseSettings(const Environment& environment) {
  for (const auto& [name, value] : environment) {
    const auto known = [&n = name](const Declaration& row) {
      return n == std::string(kPrefix) + std::string(row.name);
    };
    if (std::none_of(kTable.begin(), kTable.end(), known)) {
      throw SettingsError("unknown setting " + name + "; the settings are " + allowedNames());
    }
  }
  Settings settings;
  for (const auto& row : kTable) {
    const auto value = find(environment, row.name);
    if (value && !row.accept(settings, *value)) {
      throw SettingsError(std::string(kPrefix) + std::string(row.name) + "='" + *value +
                          "' is not valid; allowed: " + std::string(row.allowed));
    }
  }
  return settings;
}

std::vector<SettingRow> settingRows(const Environment& environment) {
  std::vector<SettingRow> rows;
  for (const auto& row : kTable) {
    const auto set = find(environment, row.name);
    const auto standard =
        row.defaultValue.empty() ? std::nullopt : std::optional<std::string>(std::string(row.defaultValue));
    rows.push_back({std::string(kPrefix) + std::string(row.name), set ? set : standard, standard, std::string(row.type),
                    std::string(row.unit), std::string(row.allowed), set.has_value(), std::string(row.text)});
  }
  return rows;
}

}  // namespace straggler
