// Detector: names the straggler, or says what else is the matter, or that nobody is to blame, or abstains. Pure: what the
// ranks did in a window and the last state in, the new state and what is to be told out. No clock, no threads, so a
// recorded job gives the same verdicts again.
//
// VERDICTS.md beside this file is the policy: kinds, formulas, gates, when it abstains, and a worked example.
//
//   state = {}; for each window:  {state, events} = decide(state, {compare(row), arrivals}, options)
//
// One state a class of peers (peer_classes.h). Of one class among several nothing is said of the whole job.
//
// `state.verdict` is the verdict in force; `events` are those that started, changed or cleared with this window, for which
// a line is due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/detect/comparison.h"
#include "backend/detect/imbalance.h"
#include "backend/detect/pace.h"
#include "backend/detect/rules.h"
#include "backend/detect/suspicion.h"
#include "backend/detect/verdict.h"

namespace straggler {

struct DetectorOptions {
  Rule rule = Rule::kSelfTime;
  double multiplier = 2;           // of the rules other than self_time
  double absoluteGateMs = 0.5;     // smaller excess is nobody's concern
  double relativeGate = 0.03;      // of the step's length
  double noiseGate = 3;            // times the noise
  double falseAlarmWindows = 1e5;  // windows to a false alarm of the sequential test, over all ranks
  double persistence = 0.8;        // share of the windows since the excess began that must be above the gate
  double changeFactor = 1.5;       // an excess that grew or shrank by so much is told again
  std::size_t changeWindows = 5;   // windows between two such lines
  double significance = 0.01;      // of arrivals that contradict, over all ranks
};

struct DetectorInput {
  WindowComparison window;
  std::vector<int> ranks;               // global, by position
  std::vector<ArrivalCounts> arrivals;  // so far, by position
  std::size_t jobRanks = 0;             // of the session, where these are one class of several; 0: these are all
  std::optional<double> ownPastMs{};    // of a rank without peers: its excess is over that (own_past.h)
};

struct DetectorState {
  std::vector<Suspicion> suspicions;  // by position
  std::vector<Recent> ownPast;        // own time of each rank, for moving_average
  std::vector<double> lastExcessMs;   // of the window before
  Recent withinMs{20};                // noise, as seen within windows
  Recent betweenMs{20};               // from window to window
  Recent betweenLatelyMs{5};          // the same, so that a load that begins is seen soon
  Pace pace;
  Imbalance imbalance;
  std::vector<int> missing;  // global ranks that told nothing of the last window
  std::uint64_t windows = 0;
  std::uint64_t incomplete = 0;  // of them
  std::uint64_t abstained = 0;   // the same: after which the verdict in force was to abstain
  std::optional<Verdict> told;   // the last line about stragglers
  std::size_t windowsSinceTold = 0;
  std::optional<Verdict> cleared;  // the last of that kind
  Verdict verdict;                 // in force
};

struct Decision {
  DetectorState state;
  std::vector<Verdict> events;
};

Decision decide(DetectorState last, const DetectorInput& input, const DetectorOptions& options = {});

}  // namespace straggler
