#include "backend/detect/detector.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "backend/base/format.h"
#include "backend/detect/statistics.h"

namespace straggler {
namespace {

// One rank's longest run of blocks, up to the end, in which most are above the gate.
struct Suspicion {
  int rank = 0;
  std::size_t firstBlock = 0;
  std::size_t above = 0;
  std::size_t blocks = 0;
  double excessMs = 0;
  double pValue = 1;
};

std::optional<Suspicion> suspect(const RankExcess& rank, double gateMs, const DetectorOptions& options,
                                 std::size_t ranks) {
  std::optional<Suspicion> longest;
  std::size_t above = 0;
  for (std::size_t block = rank.blocksMs.size(); block-- > 0;) {
    if (rank.blocksMs[block] <= gateMs) {
      continue;
    }
    ++above;
    const std::size_t blocks = rank.blocksMs.size() - block;
    if (static_cast<double>(above) >= options.persistence * static_cast<double>(blocks)) {
      longest = Suspicion{rank.rank, block, above, blocks, 0, 1};
    }
  }
  if (longest) {
    const auto begin = rank.blocksMs.begin() + static_cast<std::ptrdiff_t>(longest->firstBlock);
    longest->excessMs = *quantile(std::vector<double>(begin, rank.blocksMs.end()), 0.5);
    longest->pValue = std::min(1.0, signTestPValue(longest->above, longest->blocks) * static_cast<double>(ranks));
  }
  return longest;
}

std::string percent(double share) { return fixed(100 * share, share < 0.1 ? 1 : 0) + " %"; }

// The fewest blocks with which any rank could be named.
std::size_t blocksNeeded(std::size_t ranks, const DetectorOptions& options) {
  return static_cast<std::size_t>(std::ceil(std::log2(static_cast<double>(ranks) / options.significance)));
}

Verdict abstain(const std::string& reason) {
  Verdict verdict;
  verdict.reason = reason;
  return verdict;
}

Verdict nobody(const DetectorInput& input, double gateMs) {
  Verdict verdict;
  verdict.kind = VerdictKind::kNone;
  const RankExcess* worst = nullptr;
  double worstMs = 0;
  for (const auto& rank : input.ranks) {
    const double excess = *quantile(rank.blocksMs, 0.5);
    if (worst == nullptr || excess > worstMs) {
      worst = &rank;
      worstMs = excess;
    }
  }
  verdict.excessMs = worstMs;
  verdict.share = worstMs / input.stepMs;
  verdict.reason = "the largest excess of self time over the peers' median is rank " + std::to_string(worst->rank) +
                   "'s, " + fixed(worstMs, 2) + " ms a step; below " + fixed(gateMs, 2) +
                   " ms, or not in most of the steps up to the end, nobody is named";
  return verdict;
}

Verdict straggler(const std::vector<Suspicion>& named, const DetectorInput& input, double gateMs) {
  const Suspicion& worst = named.front();
  Verdict verdict;
  verdict.kind = VerdictKind::kStraggler;
  for (const auto& suspicion : named) {
    verdict.ranks.push_back(suspicion.rank);
  }
  verdict.excessMs = worst.excessMs;
  verdict.share = worst.excessMs / input.stepMs;
  verdict.sinceStep = input.blockSteps.at(worst.firstBlock);
  verdict.confidence = 1 - worst.pValue;
  verdict.reason = "self time " + fixed(worst.excessMs, 2) + " ms a step above the median of its peers, more than " +
                   fixed(gateMs, 2) + " ms (" + percent(gateMs / input.stepMs) + " of the step) in " +
                   std::to_string(worst.above) + " of " + std::to_string(worst.blocks) + " blocks of steps";
  return verdict;
}

}  // namespace

std::string_view toString(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kNone:
      return "none";
    case VerdictKind::kStraggler:
      return "straggler";
    default:
      return "abstain";
  }
}

Verdict detect(const DetectorInput& input, const DetectorOptions& options) {
  if (input.ranks.size() < 2) {
    return abstain("a rank alone has no peers to be compared with");
  }
  const std::size_t blocks = input.ranks.front().blocksMs.size();
  const std::size_t needed = blocksNeeded(input.ranks.size(), options);
  if (blocks < needed) {
    const auto per = static_cast<std::size_t>(input.stepsPerBlock);
    return abstain(std::to_string(blocks * per) + " steps were compared on all ranks; to name one of " +
                   std::to_string(input.ranks.size()) + " it takes " + std::to_string(needed * per));
  }
  const double gateMs = std::max(options.absoluteGateMs, options.relativeGate * input.stepMs);
  std::vector<Suspicion> named;
  for (const auto& rank : input.ranks) {
    const auto suspicion = suspect(rank, gateMs, options, input.ranks.size());
    if (suspicion && suspicion->pValue <= options.significance) {
      named.push_back(*suspicion);
    }
  }
  std::stable_sort(named.begin(), named.end(), [](const auto& a, const auto& b) { return a.excessMs > b.excessMs; });
  return named.empty() ? nobody(input, gateMs) : straggler(named, input, gateMs);
}

}  // namespace straggler
