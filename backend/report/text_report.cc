#include "backend/report/text_report.h"

#include <optional>
#include <set>
#include <vector>

#include "backend/base/format.h"
#include "backend/report/mitigation_text.h"
#include "backend/report/verdict_text.h"

namespace straggler {
namespace {

std::string milliseconds(const std::optional<double>& value) { return value ? fixed(*value, 2) : "-"; }
std::string percent(const std::optional<double>& share) { return share ? fixed(*share * 100, 1) + " %" : "-"; }

std::string rankTable(const JobReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"rank", "host", "ms/step", "self", "wait", "late p50", "late p95", "late max", "times last", "time lost"}};
  for (const auto& row : report.ranks) {
    const auto last = row.operationsCompared == 0
                          ? "-"
                          : std::to_string(row.timesLast) + "/" + std::to_string(row.operationsCompared);
    rows.push_back({std::to_string(row.rank), row.heard ? row.host : "(missing)", milliseconds(row.stepMs),
                    milliseconds(row.selfMs), milliseconds(row.waitMs), milliseconds(row.latenessP50Ms),
                    milliseconds(row.latenessP95Ms), milliseconds(row.latenessMaxMs), last,
                    percent(row.timeLostShare)});
  }
  return table(rows);
}

std::string skewTable(const JobReport& report) {
  if (report.skew.empty()) {
    return "arrival skew: no operation was compared on all ranks of its group\n";
  }
  std::vector<std::vector<std::string>> rows = {{"arrival skew (ms)", "operations", "p50", "p95", "max", "bound"}};
  for (const auto& row : report.skew) {
    rows.push_back({std::string(toString(row.kind)), std::to_string(row.operations), fixed(row.p50Ms, 3),
                    fixed(row.p95Ms, 3), fixed(row.maxMs, 3), fixed(row.boundMs, 3)});
  }
  return table(rows);
}

std::string clockTable(const JobReport& report) {
  if (report.clockRows.empty()) {
    return "";
  }
  std::vector<std::vector<std::string>> rows = {
      {"clock of rank", "offset (ms)", "bound", "drift (ppm)", "bound", "over (s)", "leaps"}};
  const auto figure = [](const std::optional<double>& value, int digits) {
    return value ? fixed(*value, digits) : "-";
  };
  for (const auto& row : report.clockRows) {
    const auto spanS = row.driftSpanMs ? std::optional(*row.driftSpanMs / 1e3) : std::nullopt;
    rows.push_back({rankList(row.ranks), figure(row.offsetMs, 3), figure(row.offsetBoundMs, 3), figure(row.driftPpm, 1),
                    figure(row.driftBoundPpm, 1), figure(spanS, 0), std::to_string(row.leaps)});
  }
  return table(rows);
}

std::string stepsText(const JobReport& report) {
  switch (report.foundBy) {
    case StepsFoundBy::kGraphTask:
      return "steps found by the backward";
    case StepsFoundBy::kOpPeriod:
      return "steps found by the period of the operations";
    case StepsFoundBy::kTime:
      return "no steps found, windows of a second instead";
    default:
      return "no steps found";
  }
}

}  // namespace

std::string armedLine(const JobReport& report) {
  std::set<std::string> hosts;
  for (const auto& row : report.ranks) {
    if (row.heard) {
      hosts.insert(row.host);
    }
  }
  std::string line =
      "straggler: armed: " + std::to_string(report.ranksReported) + " of " + plural(report.worldSize, "rank") +
      " seen on " + plural(hosts.size(), "host") + ", " + plural(report.groups.size(), "group") +
      "; measured: arrival, lateness, self and wait time (host clock" +
      (report.clocks > 1 ? ", " + std::to_string(report.clocks) + " clocks related by the traffic" : "") +
      "); not measured: point to point lateness, captured graphs";
  return line + "\nstraggler: armed: " + report.ruleText + "\n";
}

std::string textReport(const JobReport& report) {
  std::string text = verdictLines(report.verdict, report) + earlierLines(report);
  text += "straggler: " + std::to_string(report.ranksReported) + " of " + plural(report.worldSize, "rank") + ", " +
          plural(report.stepsCompared, "step") + " compared (" + stepsText(report) + "), " +
          plural(report.collectives, "collective") + " seen, " + plural(report.recordsDropped, "record") + " dropped\n";
  text += rankTable(report) + skewTable(report) + clockTable(report) + mitigationTable(report);
  for (const auto& note : report.notes) {
    text += "note: " + note + "\n";
  }
  return text;
}

}  // namespace straggler
