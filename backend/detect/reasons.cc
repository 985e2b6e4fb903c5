#include "backend/detect/reasons.h"

#include <algorithm>

#include "backend/base/format.h"
#include "backend/detect/evidence_text.h"
#include "backend/detect/own_past.h"

namespace straggler {
namespace {

std::string percent(double share) { return fixed(100 * share, share < 0.1 ? 1 : 0) + " %"; }
std::string milliseconds(double ms) { return fixed(ms, 2) + " ms"; }
std::string rankText(const std::vector<int>& ranks) { return "rank " + rankList(ranks); }

std::string lastArrivals(const Evidence& evidence) {
  if (!evidence.lastShare) {
    return "";
  }
  return "; last to arrive at " + percent(*evidence.lastShare) + " of the operations compared since" +
         (*evidence.lastPValue <= 0.01 ? "" : ", which chance alone would do too");
}

constexpr std::size_t kGroupsListed = 4;
constexpr std::size_t kNameBytes = 40;
constexpr std::size_t kRanksListed = 8;

// "rank 0, 4", bounded.
std::string firstRanks(const std::vector<int>& ranks) {
  const std::size_t listed = std::min(ranks.size(), kRanksListed);
  const std::vector<int> first(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(listed));
  return "rank " + rankList(first) +
         (listed < ranks.size() ? " and " + std::to_string(ranks.size() - listed) + " more" : "");
}

// "'dp0' (rank 0, 4)".
std::string nameOf(const GroupInfo& group) {
  return "'" + printable(group.name.substr(0, kNameBytes)) + "' (" + firstRanks(group.ranks) + ")";
}

// The rank that several groups share, if there is one and only one.
std::optional<int> commonRank(const std::vector<GroupInfo>& groups) {
  std::vector<int> common;
  for (const int rank : groups.size() < 2 ? std::vector<int>{} : groups.front().ranks) {
    const bool inAll = std::all_of(groups.begin(), groups.end(), [rank](const GroupInfo& group) {
      return std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
    });
    if (inAll) {
      common.push_back(rank);
    }
  }
  return common.size() == 1 ? std::optional(common.front()) : std::nullopt;
}

std::string comparedWith(const std::optional<double>& ownPastMs) {
  return ownPastMs ? "its own past of " + milliseconds(*ownPastMs) +
                         " and what the rest of the job is slower by (no other rank does the same work)"
                   : "the median of its peers";
}

}  // namespace

std::string stragglerReason(const Verdict& verdict, const Suspicion& worst, const Numbers& numbers,
                            const DetectorOptions& options) {
  const std::string windows =
      " in " + std::to_string(worst.above) + " of " + std::to_string(worst.windows) + " windows of steps";
  std::string text;
  if (options.rule == Rule::kSelfTime) {
    text = "its self time is " + milliseconds(*verdict.excessMs) + " a step above " + comparedWith(numbers.ownPastMs) +
           ", more than " + milliseconds(numbers.gateMs) + " (" + percent(numbers.gateMs / numbers.stepMs) +
           " of the step)" + windows;
  } else {
    text = "its own time of " + milliseconds(numbers.selfMs) + " a step is more than " + fixed(options.multiplier, 2) +
           " times " + milliseconds(numbers.referenceMs) + " (" + std::string(toString(options.rule)) + ")" + windows +
           "; the raw wall time of a step is " + milliseconds(numbers.stepMs) + " on every rank";
  }
  const std::string parts = describe(verdict.evidence);
  if (!parts.empty()) {
    text += "; of a mean excess of " + fixed(worst.meanExcessMs(), 1) + " ms: " + parts;
  }
  if (const std::string counted = describeOs(verdict.evidence, worst.meanExcessMs()); !counted.empty()) {
    text += "; " + counted;
  }
  return text + lastArrivals(verdict.evidence);
}

std::string clearedReason(const Verdict& cleared, bool ownPast) {
  return std::string("self time is as ") + (ownPast ? "before" : "the peers'") + " again, as of step " +
         std::to_string(*cleared.step) + "; the excess was " + milliseconds(*cleared.excessMs) + " a step since step " +
         std::to_string(*cleared.sinceStep);
}

std::string contradictedReason(int rank, double excessMs, const Evidence& evidence) {
  return "self time speaks for rank " + std::to_string(rank) + " (" + milliseconds(excessMs) +
         " a step above its peers), but it is the last to arrive at only " + percent(evidence.lastShare.value_or(0)) +
         " of the operations: the two disagree, so nobody is named";
}

std::string missingReason(const std::vector<int>& missing, std::int64_t step) {
  return "incomplete data: nothing was heard of " + rankText(missing) + " at step " + std::to_string(step) +
         ", so it is missing, which is neither fast nor slow; the others go on being compared";
}

std::string backReason(const std::vector<int>& ranks, std::int64_t step) {
  return rankText(ranks) + " tells again, from step " + std::to_string(step) + " on";
}

std::string imbalanceReason(const Imbalance& imbalance) {
  return "in each step some rank is " + milliseconds(imbalance.excessMs()) +
         " behind the median of the others, and no rank is it in more than " + percent(imbalance.largestShare()) +
         " of the steps: what a step takes differs by rank and step (uneven work, or too few processors), and nobody "
         "is to blame";
}

std::string jobWideReason(const Pace& pace) {
  return "self time is " + milliseconds(pace.excessMs()) + " a step (" + percent(pace.excessMs() / pace.pastMs()) +
         ") above its own past of " + milliseconds(pace.pastMs()) + " on nearly every rank: nobody is to blame";
}

std::string paceOverReason(const Pace& pace, std::int64_t step) {
  return pace.settled() ? "the ranks have been so slow for so long that it is the job's own pace now, at step " +
                              std::to_string(step)
                        : "self time is as before on nearly every rank, up to step " + std::to_string(step);
}

std::string imbalanceOverReason(std::int64_t step) {
  return "no other rank is late in each step any more, up to step " + std::to_string(step);
}

std::string nobodyReason(int rank, double excessMs, double gateMs, bool ownPast) {
  return std::string("the largest excess of self time over ") + (ownPast ? "its own past" : "the peers' median") +
         " is rank " + std::to_string(rank) + "'s, " + milliseconds(excessMs) +
         " a step over the last windows; below " + milliseconds(gateMs) + ", or not in most windows, nobody is named";
}

std::string networkReason(const Transfers& transfers, const std::vector<GroupInfo>& slow) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < slow.size() && i < kGroupsListed; ++i) {
    names.push_back(nameOf(slow[i]));
  }
  const std::size_t left = slow.size() - names.size();
  std::string text = "after the last rank has arrived, moving the data of like operations takes " +
                     milliseconds(transfers.excessMs()) + " a step longer than it did, in group " + join(names, ", ") +
                     (left > 0 ? " and " + std::to_string(left) + " more" : "") +
                     "; self times are as they were, so no rank is to blame";
  if (const auto rank = commonRank(slow)) {
    text += "; rank " + std::to_string(*rank) + " is in all of these groups: its link comes first";
  }
  return text;
}

std::string transfersOverReason(const Transfers& transfers, std::int64_t step) {
  return transfers.settled() ? "transfers have been so slow for so long that it is the job's own pace now, at step " +
                                   std::to_string(step)
                             : "moving data takes no longer than before, or something else explains it, up to step " +
                                   std::to_string(step);
}

std::string stageReason(const Stages& stages, const std::vector<int>& limiting) {
  return "the stage of " + firstRanks(limiting) + " works for " + percent(stages.limitingBusy()) +
         " of a step, the stages in the mean for " + percent(stages.meanBusy()) +
         ": it limits the pipeline, and with the work spread evenly a step would be up to " +
         milliseconds(stages.excessMs()) + " shorter; nobody is to blame";
}

std::string tooShortPastReason(int rank, std::size_t windows) {
  return "no other rank does the same work as rank " + std::to_string(rank) + ", and its own past is " +
         std::to_string(windows) + " windows of steps long; it takes at least " + std::to_string(OwnPast::kMinPast) +
         " to compare it with that";
}

std::string tooFewReason(std::uint64_t windows) {
  return std::to_string(windows) + " windows of steps were compared on all ranks; it takes at least 3 to say anything";
}

}  // namespace straggler
