// Reasons: the sentence of each verdict, with the numbers behind it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/detect/detector.h"
#include "backend/detect/stages.h"
#include "backend/detect/transfers.h"
#include "backend/exchange/messages.h"

namespace straggler {

// The numbers of the window that was judged last.
struct Numbers {
  double gateMs = 0;
  double stepMs = 0;
  double selfMs = 0;                  // own time of the worst rank, mean of a step
  double referenceMs = 0;             // what a rule other than self_time compares it with
  std::optional<double> ownPastMs{};  // of a rank without peers
};

std::string stragglerReason(const Verdict& verdict, const Suspicion& worst, const Numbers& numbers,
                            const DetectorOptions& options);
std::string clearedReason(const Verdict& cleared, bool ownPast = false);
std::string contradictedReason(int rank, double excessMs, const Evidence& evidence);
std::string missingReason(const std::vector<int>& missing, std::int64_t step);
std::string backReason(const std::vector<int>& ranks, std::int64_t step);
std::string imbalanceReason(const Imbalance& imbalance);
std::string jobWideReason(const Pace& pace);
std::string paceOverReason(const Pace& pace, std::int64_t step);
std::string imbalanceOverReason(std::int64_t step);
// `ownPast`: of a rank without peers.
std::string nobodyReason(int rank, double excessMs, double gateMs, bool ownPast = false);
// `slow`: the groups, worst first.
std::string networkReason(const Transfers& transfers, const std::vector<GroupInfo>& slow);
std::string transfersOverReason(const Transfers& transfers, std::int64_t step);
// `limiting`: the ranks of the stage that limits.
std::string stageReason(const Stages& stages, const std::vector<int>& limiting);
std::string tooShortPastReason(int rank, std::size_t windows);
std::string tooFewReason(std::uint64_t windows);

}  // namespace straggler
