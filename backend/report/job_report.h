// JobReport: what is shown to people and programs, as plain values. A time that was not measured is absent, never zero.
// All times are in milliseconds; those of a rank are means over its steps, without the first ones (set-up).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/detect/job_model.h"

namespace straggler {

struct RankRow {
  int rank = 0;  // global
  std::string host;
  std::int64_t processId = 0;
  bool heard = false;  // false: the rank has told nothing at all
  std::uint64_t steps = 0;
  std::optional<double> stepMs;  // time per iteration
  std::optional<double> selfMs;
  std::optional<double> waitMs;
  std::optional<double> latenessP50Ms;
  std::optional<double> latenessP95Ms;
  std::optional<double> latenessMaxMs;
  std::uint64_t timesLast = 0;
  std::uint64_t operationsCompared = 0;
  std::optional<double> timeLostShare;  // of the length of the steps compared
  std::uint64_t recordsDropped = 0;
};

struct SkewRow {
  OpKind kind = OpKind::kAllReduce;
  std::uint64_t operations = 0;
  double p50Ms = 0;
  double p95Ms = 0;
  double maxMs = 0;
  double boundMs = 0;  // the largest
};

// A clock other than the root's. The truth is within the bound of each figure.
struct ClockRow {
  std::vector<int> ranks;            // global, that read it
  std::optional<std::int64_t> atNs;  // what it read when `offsetMs` held; absent with it
  std::optional<double> offsetMs;    // of the root's clock less this one; absent: not known
  std::optional<double> offsetBoundMs;
  std::optional<double> driftPpm;  // by how much the offset changes, the mean of a span; absent: not known
  std::optional<double> driftBoundPpm;
  std::optional<double> driftSpanMs;
  std::uint64_t leaps = 0;  // after each, nothing was known for a while
};

// What mitigation did on a rank.
struct MitigationRow {
  int rank = 0;      // global
  std::string mode;  // carry, drop
  bool armed = false;
  std::string text;                           // for what it is armed, or why it is not; a clause
  std::uint64_t filledByProxy = 0;            // slots of any kind
  std::uint64_t late = 0;                     // slots of gradients, filled before the rank arrived in them
  std::uint64_t applied = 0;                  // late gradients that went with a later contribution
  std::uint64_t dropped = 0;                  // discarded for good
  std::uint64_t pending = 0;                  // still owed
  std::optional<double> stalenessMean;        // steps, over those applied; absent: none was
  std::optional<std::uint64_t> stalenessMax;  // the same
  double savedMs = 0;                         // the others would have waited so long for the rank, and did not
};

struct JobReport {
  std::size_t worldSize = 0;
  std::size_t ranksReported = 0;
  std::size_t clocks = 0;
  std::uint64_t stepsCompared = 0;
  std::optional<double> stepMs;
  StepsFoundBy foundBy = StepsFoundBy::kNone;
  std::vector<GroupInfo> groups;
  std::uint64_t collectives = 0;  // calls, over all ranks
  std::uint64_t recordsDropped = 0;
  Verdict verdict;               // the one in force
  std::vector<Verdict> history;  // what was told, oldest first; the last 100 of them
  std::string ruleText;          // what the rule in force can see
  std::uint64_t windowsCompared = 0;
  std::uint64_t windowsIncomplete = 0;  // of them: not every rank told of it
  std::uint64_t windowsLate = 0;        // that came in after theirs had been judged
  std::vector<RankRow> ranks;
  std::vector<SkewRow> skew;
  std::vector<ClockRow> clockRows;        // none where all ranks share one
  std::vector<MitigationRow> mitigation;  // of the ranks that told of it; none where it is off
  std::vector<std::string> notes;         // whatever makes the report less than complete

  const RankRow* row(int rank) const;
};

// Whether both say the same, though the figures may have moved on.
bool isSameVerdict(const Verdict& a, const Verdict& b);

// What there is to say of windows that came late or not at all.
std::vector<std::string> windowNotes(const JobReport& report);

// `linesLost`: records of the root's own that could not be written, of which no rank tells.
JobReport jobReport(const JobModel& model, std::uint64_t linesLost = 0);

}  // namespace straggler
