// Verdict: the named outcome, with the ranks it concerns, the numbers behind it and a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/detect/os_evidence.h"

namespace straggler {

enum class VerdictKind : std::uint8_t {
  kNone,       // the ranks were compared, and nobody is to blame
  kStraggler,  // one or more ranks are persistently late
  kImbalance,  // another rank is late each time, and none of them is to blame
  kNetwork,    // moving data takes longer than it did, and no rank is to blame
  kJobWide,    // every rank is slower than it was, and nobody is to blame
  kCleared,    // what was said before is over
  kAbstain,    // too little is known to say
};
std::string_view toString(VerdictKind kind);

// What speaks for a cause and what cross-checks it: of the worst rank, since the excess began. Absent: not measured.
struct Evidence {
  std::size_t windows = 0;           // that were compared
  std::optional<double> inputMs;     // excess over its peers, a step: inside a DataLoader's fetch
  std::optional<double> cpuMs;       // the same: the training thread ran on a processor
  std::optional<double> runDelayMs;  // the same: it was ready to run and waited for a processor
  std::size_t operations = 0;        // that were compared, of all ranks of their group
  std::optional<double> lastShare;   // of the operations compared, at how many it was the last arriver
  std::optional<double> lastPValue;  // that it is last so often by chance
  OsEvidence os{};                   // what the operating system counted for it, a step; no excess
  OsEvidence osPeers{};              // the same in the median of its peers

  // What the rank has more than its peers; nothing where either is not known.
  std::optional<double> above(OsCounter counter) const {
    const auto rank = os[counter];
    const auto peers = osPeers[counter];
    return rank && peers ? std::optional(*rank - *peers) : std::nullopt;
  }

  bool operator==(const Evidence&) const = default;
};

struct Verdict {
  VerdictKind kind = VerdictKind::kAbstain;
  std::vector<int> ranks;          // global; worst first
  std::string group;               // torch's name of the group that it concerns; empty: the widest
  std::optional<double> excessMs;  // per step, of the worst: self time above the median of its peers
  std::optional<double> share;     // that excess over the step's length
  std::optional<std::int64_t> sinceStep;
  std::optional<std::int64_t> step;  // the last step that was judged
  std::optional<double> confidence;  // 0 to 1
  std::string cause = "not_attributed";
  std::string rule = "self_time";
  Evidence evidence;
  std::string reason;  // a sentence

  bool operator==(const Verdict&) const = default;
};

}  // namespace straggler
