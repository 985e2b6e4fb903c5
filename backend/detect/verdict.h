// Verdict: the named outcome, with the ranks it concerns, the numbers behind it and a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace straggler {

enum class VerdictKind : std::uint8_t {
  kNone,       // the ranks were compared, and nobody is to blame
  kStraggler,  // one or more ranks are persistently late
  kAbstain,    // too little is known to say
};
std::string_view toString(VerdictKind kind);

struct Verdict {
  VerdictKind kind = VerdictKind::kAbstain;
  std::vector<int> ranks;          // global; worst first
  std::optional<double> excessMs;  // per step, of the worst: self time above the median of its peers
  std::optional<double> share;     // that excess over the step's length
  std::optional<std::int64_t> sinceStep;
  std::optional<double> confidence;  // 1 - p of the sign test, corrected for the number of ranks
  std::string cause = "not_attributed";
  std::string reason;  // a sentence
};

}  // namespace straggler
