#include "backend/report/json_records.h"

#include <cmath>
#include <optional>
#include <type_traits>

#include "backend/base/json.h"

namespace straggler {
namespace {

JsonLine record(const char* type) {
  JsonLine line;
  line.field("schema", kRecordSchema).field("type", type);
  return line;
}

std::optional<std::int64_t> nanoseconds(const Stamp& stamp) {
  return stamp.known() ? std::optional(toNanoseconds(stamp.time)) : std::nullopt;
}

std::optional<std::string_view> source(const Stamp& stamp) {
  return stamp.known() ? std::optional(toString(stamp.source)) : std::nullopt;
}

// ---- Messages ----

JsonLine line(const RankHello& hello) {
  return record("rank")
      .field("host", hello.host)
      .field("pid", hello.processId)
      .field("clock_domain", hello.clockDomain);
}

JsonLine groupFields(JsonLine line, const GroupInfo& group) {
  return line.field("name", group.name)
      .field("desc", group.description)
      .field("backend", group.backend)
      .field("ranks", group.ranks);
}

JsonLine line(const GroupInfo& group) { return groupFields(record("group"), group); }

JsonLine line(const StepWindow& window) {
  JsonLine line = record("window");
  line.field("first_step", window.firstStep)
      .field("stride", window.stride)
      .field("steps_found_by", toString(window.foundBy))
      .field("self_us", window.selfUs)
      .field("duration_us", window.durationUs)
      .field("input_us", window.inputUs)
      .field("cpu_us", window.cpuUs)
      .field("run_delay_us", window.runDelayUs);
  for (const OsCounter counter : allOsCounters()) {
    line.field(totalField(counter), window.os[counter]);
  }
  return line;
}

JsonLine line(const ArrivalSamples& samples) {
  std::vector<JsonLine> operations;
  for (const auto& sample : samples.operations) {
    operations.push_back(
        JsonLine()
            .field("group", sample.key.group)
            .field("collective_seq_id", sample.key.sequence)
            .field("kind", toString(sample.key.kind))
            .field("arrival_ns", toNanoseconds(sample.arrival))
            .field("completed_ns", sample.completed ? std::optional(toNanoseconds(*sample.completed)) : std::nullopt)
            .field("size_class", sample.sizeClass)
            .field("polled", sample.polled));
  }
  return record("arrivals").field("sampling", samples.sampling).field("operations", operations);
}

JsonLine line(const RankCounters& counters) {
  return record("counters")
      .field("collectives", counters.collectives)
      .field("records_dropped", counters.recordsDropped)
      .field("messages_lost", counters.messagesLost)
      .field("captured", counters.captured)
      .field("final", counters.final);
}

JsonLine line(const MitigationSummary& summary) {
  return record("mitigation")
      .field("mode", summary.mode)
      .field("armed", summary.armed)
      .field("text", summary.text)
      .field("filled_by_proxy", summary.filledByProxy)
      .field("late", summary.late)
      .field("applied", summary.applied)
      .field("dropped", summary.dropped)
      .field("pending", summary.pending)
      .field("staleness_sum", summary.stalenessSum)
      .field("staleness_max", summary.stalenessMax)
      .field("saved_us", summary.savedUs);
}

JsonLine line(const RankProgram& program) {
  std::vector<JsonLine> uses;
  for (const auto& use : program.uses) {
    uses.push_back(JsonLine().field("group", use.group).field("kind", toString(use.kind)));
  }
  return record("program").field("uses", uses);
}

JsonLine line(const ClockReading& reading) {
  return record("clock")
      .field("root_before_ns", toNanoseconds(reading.rootBefore))
      .field("root_after_ns", toNanoseconds(reading.rootAfter))
      .field("before_ns", toNanoseconds(reading.before))
      .field("after_ns", toNanoseconds(reading.after));
}

// ---- Report ----

// Of a rank, a step, to a thousandth; null where nothing was measured, as where nobody is named.
std::optional<JsonLine> osLine(const OsEvidence& evidence) {
  if (evidence.empty()) {
    return std::nullopt;
  }
  JsonLine line;
  for (const OsCounter counter : allOsCounters()) {
    const auto value = evidence[counter];
    line.field(stepField(counter), value ? std::optional(std::round(*value * 1e3) / 1e3) : std::nullopt);
  }
  return line;
}

JsonLine verdictFields(JsonLine line, const Verdict& verdict, const JobReport& report) {
  std::vector<std::string> hosts;
  for (const int rank : verdict.ranks) {
    const RankRow* row = report.row(rank);
    hosts.push_back(row == nullptr ? "" : row->host);
  }
  const auto widest = report.groups.empty() ? std::nullopt : std::optional(report.groups.front().name);
  const auto group = verdict.group.empty() ? widest : std::optional(verdict.group);
  return line.field("kind", toString(verdict.kind))
      .field("ranks", verdict.ranks)
      .field("hosts", hosts)
      .field("group", group)
      .field("cause", verdict.cause)
      .field("excess_ms", verdict.excessMs)
      .field("share", verdict.share)
      .field("since_step", verdict.sinceStep)
      .field("confidence", verdict.confidence)
      .field("reason", verdict.reason)
      .field("step", verdict.step)
      .field("rule", verdict.rule)
      .field("windows", verdict.evidence.windows)
      .field("input_ms", verdict.evidence.inputMs)
      .field("cpu_ms", verdict.evidence.cpuMs)
      .field("run_delay_ms", verdict.evidence.runDelayMs)
      .field("operations_compared", verdict.evidence.operations)
      .field("last_share", verdict.evidence.lastShare)
      .field("last_p_value", verdict.evidence.lastPValue)
      .field("os", osLine(verdict.evidence.os))
      .field("os_peers", osLine(verdict.evidence.osPeers));
}

JsonLine rankLine(const RankRow& row) {
  return JsonLine()
      .field("rank", row.rank)
      .field("host", row.heard ? std::optional(row.host) : std::nullopt)
      .field("pid", row.heard ? std::optional(row.processId) : std::nullopt)
      .field("steps", row.steps)
      .field("step_ms", row.stepMs)
      .field("self_ms", row.selfMs)
      .field("wait_ms", row.waitMs)
      .field("lateness_p50_ms", row.latenessP50Ms)
      .field("lateness_p95_ms", row.latenessP95Ms)
      .field("lateness_max_ms", row.latenessMaxMs)
      .field("last", row.timesLast)
      .field("operations_compared", row.operationsCompared)
      .field("time_lost_share", row.timeLostShare)
      .field("records_dropped", row.recordsDropped);
}

JsonLine skewLine(const SkewRow& row) {
  return JsonLine()
      .field("kind", toString(row.kind))
      .field("operations", row.operations)
      .field("skew_p50_ms", row.p50Ms)
      .field("skew_p95_ms", row.p95Ms)
      .field("skew_max_ms", row.maxMs)
      .field("bound_ms", row.boundMs);
}

JsonLine clockLine(const ClockRow& row) {
  return JsonLine()
      .field("ranks", row.ranks)
      .field("at_ns", row.atNs)
      .field("offset_ms", row.offsetMs)
      .field("offset_bound_ms", row.offsetBoundMs)
      .field("drift_ppm", row.driftPpm)
      .field("drift_bound_ppm", row.driftBoundPpm)
      .field("drift_span_ms", row.driftSpanMs)
      .field("leaps", row.leaps);
}

JsonLine mitigationLine(const MitigationRow& row) {
  return JsonLine()
      .field("rank", row.rank)
      .field("mode", row.mode)
      .field("armed", row.armed)
      .field("text", row.text)
      .field("filled_by_proxy", row.filledByProxy)
      .field("late", row.late)
      .field("applied", row.applied)
      .field("dropped", row.dropped)
      .field("pending", row.pending)
      .field("staleness_mean", row.stalenessMean)
      .field("staleness_max", row.stalenessMax)
      .field("saved_ms", row.savedMs);
}

}  // namespace

DetectorOptions SessionStart::detectorOptions() const {
  DetectorOptions options;
  options.rule = ruleFromString(rule).value_or(options.rule);
  options.multiplier = multiplier;
  return options;
}

std::string toJson(const SessionStart& session) {
  return record("session")
      .field("ranks", session.ranks)
      .field("window", session.stepsPerWindow)
      .field("unix_time_ns", session.unixTimeNs)
      .field("rule", session.rule)
      .field("multiplier", session.multiplier)
      .text();
}

std::string toJson(int rank, const Message& message) {
  return std::visit([](const auto& m) { return line(m); }, message).field("rank", rank).text();
}

std::string toJson(int rank, const GroupInfo& group, const Operation& operation) {
  const bool numbered = isNumbered(operation.key.kind);
  const bool typed = *operation.dtype != '\0';
  const bool inGraph = operation.graphTask != kNoGraphTask;
  const char* state = operation.failed ? "failed" : (operation.completed.known() ? "completed" : "unknown");
  return record("operation")
      .field("rank", rank)
      .field("process_group", std::vector<std::string>{group.name, group.description})
      .field("collective_seq_id", numbered ? std::optional(operation.key.sequence) : std::nullopt)
      .field("is_p2p", !numbered)
      .field("kind", toString(operation.key.kind))
      .field("method", operation.method)
      .field("input_dtypes", typed ? std::vector<std::string>{operation.dtype} : std::vector<std::string>{})
      .field("bytes", operation.bytes)
      .field("async", operation.asynchronous)
      .field("graph_task", inGraph ? std::optional(operation.graphTask) : std::nullopt)
      .field("training_thread", operation.trainingThread)
      .field("state", state)
      .field("arrival_ns", toNanoseconds(operation.arrival.time))
      .field("arrival_from", toString(operation.arrival.source))
      .field("issued_ns", nanoseconds(operation.issued))
      .field("completed_ns", nanoseconds(operation.completed))
      .field("completed_from", source(operation.completed))
      .field("waited_ns", nanoseconds(operation.waited))
      .field("released_ns", nanoseconds(operation.released))
      .field("released_from", source(operation.released))
      .text();
}

std::string toJson(const Verdict& verdict, const JobReport& report) {
  return verdictFields(record("verdict"), verdict, report).text();
}

std::string toJson(const JobReport& report) {
  std::vector<JsonLine> groups;
  for (const auto& group : report.groups) {
    groups.push_back(groupFields(JsonLine(), group));
  }
  std::vector<JsonLine> history;
  for (const auto& verdict : report.history) {
    history.push_back(verdictFields(JsonLine(), verdict, report));
  }
  std::vector<JsonLine> ranks;
  for (const auto& row : report.ranks) {
    ranks.push_back(rankLine(row));
  }
  std::vector<JsonLine> skew;
  for (const auto& row : report.skew) {
    skew.push_back(skewLine(row));
  }
  std::vector<JsonLine> clocks;
  for (const auto& row : report.clockRows) {
    clocks.push_back(clockLine(row));
  }
  std::vector<JsonLine> mitigation;
  for (const auto& row : report.mitigation) {
    mitigation.push_back(mitigationLine(row));
  }
  return record("report")
      .field("world_size", report.worldSize)
      .field("ranks_reported", report.ranksReported)
      .field("clocks", report.clocks)
      .field("steps", report.stepsCompared)
      .field("step_ms", report.stepMs)
      .field("steps_found_by", toString(report.foundBy))
      .field("groups", groups)
      .field("collectives", report.collectives)
      .field("records_dropped", report.recordsDropped)
      .field("verdict", verdictFields(JsonLine(), report.verdict, report))
      .field("history", history)
      .field("windows_compared", report.windowsCompared)
      .field("windows_incomplete", report.windowsIncomplete)
      .field("windows_late", report.windowsLate)
      .field("ranks", ranks)
      .field("skew", skew)
      .field("clock_offsets", clocks)
      .field("mitigation", mitigation)
      .field("notes", report.notes)
      .text();
}

}  // namespace straggler
