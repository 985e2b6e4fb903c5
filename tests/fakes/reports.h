// A small report with every field filled in: two ranks on two hosts, the second late.
#pragma once

#include "backend/report/job_report.h"

namespace straggler {

inline JobReport smallReport() {
  JobReport report;
  report.worldSize = report.ranksReported = 2;
  report.clocks = 1;
  report.stepsCompared = 295;
  report.stepMs = 34.0;
  report.foundBy = StepsFoundBy::kGraphTask;
  report.groups = {{"0", "default_pg", "gloo", {0, 1}}};
  report.collectives = 1200;
  report.ruleText =
      "rule self_time: a rank is named from an excess of 3 % of the step on, at least 0.5 ms, and above the noise";
  report.verdict.kind = VerdictKind::kStraggler;
  report.verdict.ranks = {1};
  report.verdict.excessMs = 8.07;
  report.verdict.share = 0.2374;
  report.verdict.sinceStep = 35;
  report.verdict.confidence = 0.999;
  report.verdict.reason = "self time 8.07 ms a step above the median of its peers";
  RankRow fast;
  fast.rank = 0;
  fast.host = "node-a";
  fast.processId = 101;
  fast.heard = true;
  fast.steps = 295;
  fast.stepMs = 34.0;
  fast.selfMs = 25.0;
  fast.waitMs = 9.0;
  fast.latenessP50Ms = 0.0;
  fast.latenessP95Ms = 0.25;
  fast.latenessMaxMs = 1.5;
  fast.timesLast = 3;
  fast.operationsCompared = 900;
  fast.timeLostShare = 0.0;
  RankRow slow = fast;
  slow.rank = 1;
  slow.host = "node-bb";
  slow.processId = 102;
  slow.selfMs = 33.07;
  slow.waitMs = 0.93;
  slow.latenessP50Ms = 8.01;
  slow.latenessP95Ms = 8.5;
  slow.latenessMaxMs = 12.125;
  slow.timesLast = 897;
  slow.timeLostShare = 0.236;
  slow.recordsDropped = 4;
  report.recordsDropped = 4;
  report.ranks = {fast, slow};
  report.skew = {{OpKind::kAllReduce, 890, 8.0, 8.6, 12.125, 0.001}, {OpKind::kBroadcast, 10, 0.5, 0.75, 1.0, 0.001}};
  report.notes = {"4 records were dropped or could not be written"};
  return report;
}

// The same, with a clock that is known and one that is not.
inline JobReport clocksReport() {
  JobReport report = smallReport();
  report.clocks = 3;
  ClockRow known;
  known.ranks = {2, 3};
  known.atNs = 5'000'000'000;
  known.offsetMs = 10'000.125;
  known.offsetBoundMs = 0.25;
  known.driftPpm = -100;
  known.driftBoundPpm = 4.5;
  known.driftSpanMs = 118'000;
  known.leaps = 1;
  ClockRow unknown;
  unknown.ranks = {4};
  report.clockRows = {known, unknown};
  return report;
}

// The same, its second rank mitigated.
inline JobReport mitigatedReport() {
  JobReport report = smallReport();
  MitigationRow fast;
  fast.mode = "carry";
  fast.armed = true;
  fast.text = "gradients of group 0, quorum 1 of 2";
  MitigationRow slow = fast;
  slow.rank = 1;
  slow.filledByProxy = 41;
  slow.late = 40;
  slow.applied = 37;
  slow.dropped = 1;
  slow.pending = 2;
  slow.stalenessMean = 2.0;
  slow.stalenessMax = 5;
  slow.savedMs = 3'250;
  report.mitigation = {fast, slow};
  return report;
}

}  // namespace straggler
