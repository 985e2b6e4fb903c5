// The settings: one table with name, type, allowed values, default, unit and text. The parser, the error messages, the
// `straggler settings` command and the documentation's table all come from it. This is the only place that reads
// STRAGGLER_* from the environment.
//
// Contract: an unknown STRAGGLER_* name or a malformed value throws SettingsError, whose text names the setting, what
// was found and what is allowed. So a job stops at its start, before the first collective, never in the middle.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace straggler {

class SettingsError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

inline constexpr int kMaxWindow = 1000;       // steps
inline constexpr int kMaxStaleness = 1024;    // steps
inline constexpr double kMaxGraceMs = 3.6e6;  // an hour

// So many ranks, or a share of them.
struct QuorumSetting {
  double value = 0.5;  // below 1: a share

  // Of a group of so many. Throws SettingsError if it has fewer.
  int of(int ranks) const;
};

// What the C++ side reads. STRAGGLER_INTERCEPT, STRAGGLER_INJECT and STRAGGLER_FORCE_PARTICIPATION are in the table too, but
// are read by the Python package, before a group exists; the observing side is not told of an injection.
struct Settings {
  std::string directory;           // STRAGGLER_DIR: where records go; empty: nowhere
  int window = 10;                 // STRAGGLER_WINDOW: steps a window
  std::string rule = "self_time";  // STRAGGLER_RULE: by which a rank is named
  double multiplier = 2.0;         // STRAGGLER_MULTIPLIER: used by the other rules than self_time

  std::string mitigate = "off";     // STRAGGLER_MITIGATE: off, carry, drop
  int staleness = 8;                // STRAGGLER_STALENESS: steps a rank may be behind
  std::optional<double> graceMs{};  // STRAGGLER_GRACE_MS; nothing: as measured
  QuorumSetting quorum{};           // STRAGGLER_QUORUM
};

// One row of the table, with the value in force.
struct SettingRow {
  std::string name;
  std::optional<std::string> value;
  std::optional<std::string> defaultValue;
  std::string type;  // path, names, text, whole number, number, choice
  std::string unit;  // empty: it has none
  std::string allowed;
  bool fromEnvironment = false;
  std::string text;
};

// (name, value) pairs of every variable that begins with STRAGGLER_.
using Environment = std::vector<std::pair<std::string, std::string>>;

Environment readEnvironment();
Settings parseSettings(const Environment& environment);
std::vector<SettingRow> settingRows(const Environment& environment);

}  // namespace straggler
