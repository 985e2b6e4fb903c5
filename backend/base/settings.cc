#include "backend/base/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

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

bool acceptDirectory(Settings& settings, const std::string& value) {
  settings.directory = value;
  return !value.empty();
}

bool acceptWindow(Settings& settings, const std::string& value) {
  const auto* end = value.data() + value.size();
  const auto [last, error] = std::from_chars(value.data(), end, settings.window);
  return error == std::errc() && last == end && settings.window >= 1 && settings.window <= kMaxWindow;
}

bool acceptRule(Settings& settings, const std::string& value) {
  settings.rule = value;
  return value == "self_time" || value == "mean_multiple" || value == "moving_average" || value == "median";
}

bool acceptMultiplier(Settings& settings, const std::string& value) {
  const auto* end = value.data() + value.size();
  const auto [last, error] = std::from_chars(value.data(), end, settings.multiplier);
  return error == std::errc() && last == end && std::isfinite(settings.multiplier) && settings.multiplier > 1;
}

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

constexpr std::array<Declaration, 6> kTable = {{
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
