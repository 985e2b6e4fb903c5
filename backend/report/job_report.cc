#include "backend/report/job_report.h"

#include <algorithm>
#include <utility>

#include "backend/base/format.h"

namespace straggler {
namespace {

RankRow rankRow(const RankModel& model, const JobModel& job) {
  RankRow row;
  row.rank = model.rank;
  if (model.hello) {
    row.heard = true;
    row.host = printable(model.hello->host);
    row.processId = model.hello->processId;
  }
  row.steps = model.durationMs.count();
  row.stepMs = model.durationMs.mean();
  row.selfMs = model.selfMs.mean();
  if (row.stepMs) {
    row.waitMs = *row.stepMs - *row.selfMs;
  }
  row.latenessP50Ms = model.latenessMs.quantile(0.5);
  row.latenessP95Ms = model.latenessMs.quantile(0.95);
  row.latenessMaxMs = model.latenessMs.max();
  row.timesLast = model.timesLast;
  row.operationsCompared = model.latenessMs.count();
  if (job.comparedMs() > 0 && job.ranks().size() > 1) {
    row.timeLostShare = model.lostMs / job.comparedMs();
  }
  row.recordsDropped = model.counters.recordsDropped;
  return row;
}

std::vector<SkewRow> skewRows(const JobModel& model) {
  std::vector<SkewRow> rows;
  for (std::size_t i = 0; i < model.kinds().size(); ++i) {
    const KindModel& kind = model.kinds().at(i);
    if (kind.skewMs.count() > 0) {
      rows.push_back({static_cast<OpKind>(i), kind.skewMs.count(), *kind.skewMs.quantile(0.5),
                      *kind.skewMs.quantile(0.95), *kind.skewMs.max(), *kind.boundMs.max()});
    }
  }
  return rows;
}

ClockRow clockRow(const ClockRelation& relation) {
  ClockRow row;
  row.ranks = relation.ranks;
  if (relation.offset) {
    row.atNs = toNanoseconds(relation.at);
    row.offsetMs = toMilliseconds(relation.offset->middle());
    row.offsetBoundMs = toMilliseconds(relation.offset->bound());
  }
  if (relation.drift) {
    row.driftPpm = relation.drift->middlePpm();
    row.driftBoundPpm = relation.drift->boundPpm();
    row.driftSpanMs = toMilliseconds(relation.drift->span);
  }
  row.leaps = relation.leaps;
  return row;
}

// A clock that leaps again and again drifts by more than is allowed for, or its stamps are wrong.
std::optional<std::string> leapsNote(const JobReport& report) {
  std::uint64_t leaps = 0;
  for (const auto& clock : report.clockRows) {
    leaps += clock.leaps;
  }
  if (leaps == 0) {
    return std::nullopt;
  }
  return "clocks leapt " + plural(leaps, "time") + ": arrivals on them were not compared until they were known again";
}

MitigationRow mitigationRow(int rank, const MitigationSummary& summary) {
  MitigationRow row;
  row.rank = rank;
  row.mode = printable(summary.mode);
  row.armed = summary.armed;
  row.text = printable(summary.text);
  row.filledByProxy = summary.filledByProxy;
  row.late = summary.late;
  row.applied = summary.applied;
  row.dropped = summary.dropped;
  row.pending = summary.pending;
  if (summary.applied > 0) {
    row.stalenessMean = static_cast<double>(summary.stalenessSum) / static_cast<double>(summary.applied);
    row.stalenessMax = summary.stalenessMax;
  }
  row.savedMs = static_cast<double>(summary.savedUs) / 1e3;
  return row;
}

// A rank that has told its end owes what it owes for good.
std::optional<std::string> owedNote(const JobModel& model) {
  std::vector<int> ranks;
  std::uint64_t owed = 0;
  for (const auto& rank : model.ranks()) {
    if (rank.counters.final && rank.mitigation && rank.mitigation->pending > 0) {
      ranks.push_back(rank.rank);
      owed += rank.mitigation->pending;
    }
  }
  if (ranks.empty()) {
    return std::nullopt;
  }
  return "rank " + rankList(ranks) + (ranks.size() == 1 ? " ends with " : " end with ") + plural(owed, "gradient") +
         (owed == 1 ? " that was" : " that were") +
         " not applied; torch_straggler.flush() before the last step applies " + (owed == 1 ? "it" : "them");
}

constexpr std::uint64_t kManyDropped = 20;
constexpr double kBiased = 4;  // times as often as the others

// Where one rank's gradients are dropped and the others' are not, what it computes counts less.
std::vector<std::string> biasNotes(const JobReport& report) {
  std::vector<std::string> notes;
  double all = 0;
  for (const auto& row : report.mitigation) {
    all += static_cast<double>(row.dropped);
  }
  for (const auto& row : report.mitigation) {
    const double others =
        (all - static_cast<double>(row.dropped)) / static_cast<double>(std::max<std::size_t>(report.worldSize, 2) - 1);
    if (row.mode == "drop" && row.dropped >= kManyDropped && static_cast<double>(row.dropped) > kBiased * others) {
      notes.push_back(
          "ALARM: gradients of rank " + std::to_string(row.rank) + " were dropped " + plural(row.dropped, "time") +
          ", those of the others " + fixed(others, 1) +
          " times each in the mean: what it computes counts less in the model; STRAGGLER_MITIGATE=carry loses none");
    }
  }
  return notes;
}

std::vector<std::string> notesOf(const JobModel& model, const JobReport& report) {
  std::vector<std::string> notes;
  std::vector<int> silent;
  std::vector<int> unfinished;
  std::uint64_t lost = 0;
  std::uint64_t captured = 0;
  for (const auto& rank : model.ranks()) {
    if (!rank.hello) {
      silent.push_back(rank.rank);
    } else if (!rank.counters.final) {
      unfinished.push_back(rank.rank);
    }
    lost += rank.counters.messagesLost;
    captured += rank.counters.captured;
  }
  if (!silent.empty()) {
    notes.push_back("nothing was heard of rank " + rankList(silent) +
                    ": it is missing, and nobody is compared with it");
  }
  if (!unfinished.empty()) {
    notes.push_back("rank " + rankList(unfinished) + " has not told its end: its figures may lack the last steps");
  }
  if (report.recordsDropped > 0) {
    notes.push_back(std::to_string(report.recordsDropped) + " records were dropped or could not be written");
  }
  if (lost > 0) {
    notes.push_back(std::to_string(lost) + " summaries could not be sent");
  }
  if (captured > 0) {
    notes.push_back(std::to_string(captured) +
                    " operations were captured into device graphs: their replays are not seen");
  }
  if (model.windowsPassedOver() + model.operationsGivenUp() > 0) {
    notes.push_back(std::to_string(model.windowsPassedOver()) + " windows of steps and " +
                    std::to_string(model.operationsGivenUp()) +
                    " operations were given up: not every rank told of them");
  }
  for (auto& note : windowNotes(report)) {
    notes.push_back(std::move(note));
  }
  if (auto note = leapsNote(report)) {
    notes.push_back(std::move(*note));
  }
  for (auto& note : biasNotes(report)) {
    notes.push_back(std::move(note));
  }
  if (auto note = owedNote(model)) {
    notes.push_back(std::move(*note));
  }
  if (model.strangers() > 0) {
    notes.push_back(std::to_string(model.strangers()) + " frames came from ranks that are no members and were ignored");
  }
  if (model.largestSampling() > 1 || model.largestStride() > 1) {
    notes.push_back("to spare the store, arrivals are of 1 in " + std::to_string(model.largestSampling()) +
                    " collectives, step times of 1 in " + std::to_string(model.largestStride()) + " windows");
  }
  return notes;
}

}  // namespace

const RankRow* JobReport::row(int rank) const {
  const auto place = std::find_if(ranks.begin(), ranks.end(), [rank](const auto& r) { return r.rank == rank; });
  return place == ranks.end() ? nullptr : &*place;
}

bool isSameVerdict(const Verdict& a, const Verdict& b) {
  return a.kind == b.kind && a.ranks == b.ranks && a.cause == b.cause && a.sinceStep == b.sinceStep;
}

std::vector<std::string> windowNotes(const JobReport& report) {
  std::vector<std::string> notes;
  if (report.windowsIncomplete > 0) {
    notes.push_back(std::to_string(report.windowsIncomplete) + " of " + std::to_string(report.windowsCompared) +
                    " windows are incomplete: not every rank told of them, and who did not is not compared");
  }
  if (report.windowsLate > 0) {
    notes.push_back(std::to_string(report.windowsLate) + " windows of ranks came in after theirs had been judged");
  }
  return notes;
}

JobReport jobReport(const JobModel& model, std::uint64_t linesLost) {
  JobReport report;
  report.recordsDropped = linesLost;
  report.worldSize = model.ranks().size();
  report.ranksReported = model.ranksHeard();
  report.clocks = model.clocks().count();
  report.stepsCompared = model.stepsCompared();
  report.foundBy = model.foundBy();
  for (const auto& [id, group] : model.groups()) {
    report.groups.push_back(group);
  }
  // The widest group first: the one that all members of the session share.
  std::sort(report.groups.begin(), report.groups.end(), [](const GroupInfo& a, const GroupInfo& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size() : a.name < b.name;
  });
  for (const auto& rank : model.ranks()) {
    report.collectives += rank.counters.collectives;
    report.recordsDropped += rank.counters.recordsDropped;
    report.ranks.push_back(rankRow(rank, model));
    if (rank.mitigation) {
      report.mitigation.push_back(mitigationRow(rank.rank, *rank.mitigation));
    }
  }
  if (report.stepsCompared > 0) {
    report.stepMs = model.comparedMs() / static_cast<double>(report.stepsCompared);
  }
  report.verdict = model.verdict();
  report.history = {model.history().begin(), model.history().end()};
  report.windowsCompared = model.windowsCompared();
  report.windowsIncomplete = model.windowsIncomplete();
  report.windowsLate = model.windowsLate();
  report.ruleText = model.ruleText();
  report.skew = skewRows(model);
  for (const auto& relation : model.clocks().relations()) {
    report.clockRows.push_back(clockRow(relation));
  }
  report.notes = notesOf(model, report);
  return report;
}

}  // namespace straggler
