#include "backend/report/verdict_text.h"

#include <algorithm>
#include <optional>

#include "backend/base/format.h"
#include "backend/report/mitigation_text.h"

namespace straggler {
namespace {

constexpr std::size_t kRanksListed = 8;
constexpr std::size_t kEarlierListed = 10;

std::string hostOf(const JobReport& report, int rank) {
  const RankRow* row = report.row(rank);
  return row != nullptr && row->heard ? row->host : "?";
}

// "rank 2 (a), 5 (b) and 12 more".
std::string whoText(const Verdict& verdict, const JobReport& report) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(verdict.ranks.size(), kRanksListed); ++i) {
    names.push_back(std::to_string(verdict.ranks[i]) + " (" + hostOf(report, verdict.ranks[i]) + ")");
  }
  const std::size_t left = verdict.ranks.size() - names.size();
  return "rank " + join(names, ", ") + (left > 0 ? " and " + std::to_string(left) + " more" : "");
}

// " +8.1 ms/step (21 % of the step) since step 30", as far as it is known.
std::string excessText(const Verdict& verdict) {
  std::string text;
  if (verdict.excessMs) {
    text += " +" + fixed(*verdict.excessMs, 1) + " ms/step";
  }
  if (verdict.share) {
    text += " (" + fixed(100 * *verdict.share, 0) + " % of the step)";
  }
  if (verdict.sinceStep) {
    text += " since step " + std::to_string(*verdict.sinceStep);
  }
  return text;
}

std::string whyAndNext(const Verdict& verdict, const JobReport& report, const std::string& next) {
  return "\n  why: " + verdict.reason + "\n" + mitigationLine(verdict, report) + "  next: look at " + next + "\n";
}

// Where to look for what makes the worst rank late.
std::string nextOfCause(const Verdict& verdict) {
  const std::string rank = verdict.ranks.empty() ? "the rank" : "rank " + std::to_string(verdict.ranks.front());
  if (verdict.cause == "host_input") {
    return rank + "'s data loader: its disk, the number of its workers, what they compute";
  }
  if (verdict.cause == "host_launch") {
    return "what else runs on " + rank + "'s processor, its CPU quota, and the pinning of its threads";
  }
  if (verdict.cause == "host_compute") {
    return "what " + rank + "'s Python or its CPU tensors compute that other ranks do not";
  }
  return "what " + rank + " does between its collectives: its input, its Python threads, its processor";
}

std::string nextOfImbalance(const Verdict& verdict) {
  return verdict.cause == "stage_imbalance" ? "how the layers are spread over the stages: fewer, or a faster device, "
                                              "for the one that limits; at what only it "
                                              "does (an embedding, the loss); then at more microbatches a step"
                                            : "what makes another rank late each time: lengths of sequences, sizes of "
                                              "samples, more threads than processors";
}

std::string nameOf(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kStraggler:
      return "STRAGGLER";
    case VerdictKind::kImbalance:
      return "IMBALANCE";
    case VerdictKind::kNetwork:
      return "NETWORK";
    case VerdictKind::kJobWide:
      return "JOB WIDE";
    case VerdictKind::kCleared:
      return "CLEARED";
    case VerdictKind::kNone:
      return "NO STRAGGLER";
    default:
      return "NO VERDICT";
  }
}

bool isSlow(VerdictKind kind) {
  return kind == VerdictKind::kStraggler || kind == VerdictKind::kImbalance || kind == VerdictKind::kNetwork ||
         kind == VerdictKind::kJobWide;
}

std::string earlierLine(const Verdict& verdict, std::optional<std::int64_t> end) {
  std::string text = "earlier: " + nameOf(verdict.kind);
  if (!verdict.ranks.empty()) {
    const std::vector<int> listed(
        verdict.ranks.begin(),
        verdict.ranks.begin() + static_cast<std::ptrdiff_t>(std::min(verdict.ranks.size(), kRanksListed)));
    text += " rank " + rankList(listed);
    text += listed.size() < verdict.ranks.size()
                ? " and " + std::to_string(verdict.ranks.size() - listed.size()) + " more"
                : "";
  }
  if (verdict.excessMs) {
    text += ", +" + fixed(*verdict.excessMs, 1) + " ms/step";
  }
  if (verdict.sinceStep) {
    text += ", steps " + std::to_string(*verdict.sinceStep) + " to " + (end ? std::to_string(*end) : "?");
  }
  return text + "\n";
}

}  // namespace

std::string verdictLines(const Verdict& verdict, const JobReport& report) {
  const std::string name = nameOf(verdict.kind);
  switch (verdict.kind) {
    case VerdictKind::kStraggler:
      return name + " " + whoText(verdict, report) + " cause=" + verdict.cause + excessText(verdict) +
             whyAndNext(verdict, report, nextOfCause(verdict));
    case VerdictKind::kImbalance:
      return name + (verdict.cause == "stage_imbalance" ? " cause=" + verdict.cause : "") + excessText(verdict) +
             whyAndNext(verdict, report, nextOfImbalance(verdict));
    case VerdictKind::kNetwork:
      return name + " group '" + printable(verdict.group) + "'" + excessText(verdict) +
             whyAndNext(verdict, report,
                        "the links between these ranks: errors and retransmits, speed and duplex, what else uses them; "
                        "then at what is sent: its size, and what was sent before");
    case VerdictKind::kJobWide:
      return name + excessText(verdict) +
             whyAndNext(verdict, report,
                        "what all ranks share: the storage, the network, the host, the last change of the script");
    case VerdictKind::kCleared:
      return name + (verdict.ranks.empty() ? "" : " " + whoText(verdict, report)) + ": " + verdict.reason + "\n";
    default:
      return name + ": " + verdict.reason + "\n";
  }
}

// What was said lasted until the next thing was. The last one may be the verdict in force.
std::string earlierLines(const JobReport& report) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < report.history.size(); ++i) {
    const Verdict& said = report.history[i];
    const bool last = i + 1 == report.history.size();
    if (isSlow(said.kind) && !(last && isSameVerdict(said, report.verdict))) {
      lines.push_back(earlierLine(said, last ? said.step : report.history[i + 1].step));
    }
  }
  std::string text;
  const std::size_t left = lines.size() > kEarlierListed ? lines.size() - kEarlierListed : 0;
  if (left > 0) {
    text += "earlier: " + std::to_string(left) + " more, before these\n";
  }
  for (std::size_t i = left; i < lines.size(); ++i) {
    text += lines[i];
  }
  return text;
}

}  // namespace straggler
