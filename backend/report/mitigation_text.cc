#include "backend/report/mitigation_text.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "backend/base/format.h"

namespace straggler {
namespace {

constexpr std::size_t kStatesListed = 8;

std::string seconds(double milliseconds) { return fixed(milliseconds / 1e3, 1); }

std::string stateText(const MitigationRow& row) {
  return (row.armed ? "armed" : "not armed") + (row.text.empty() ? "" : ": " + row.text);
}

// ---- Under a verdict ----

std::vector<MitigationRow> rowsOf(const Verdict& verdict, const JobReport& report) {
  if (verdict.kind == VerdictKind::kImbalance) {
    return report.mitigation;
  }
  std::vector<MitigationRow> rows;
  for (const int rank : verdict.kind == VerdictKind::kStraggler ? verdict.ranks : std::vector<int>{}) {
    for (const auto& row : report.mitigation) {
      if (row.rank == rank) {
        rows.push_back(row);
      }
    }
  }
  return rows;
}

// "40 slots were filled for it, 3.2 s saved".
std::string filledText(const std::vector<MitigationRow>& rows, const char* whom) {
  std::uint64_t filled = 0;
  double savedMs = 0;
  for (const auto& row : rows) {
    filled += row.filledByProxy;
    savedMs += row.savedMs;
  }
  return plural(filled, "slot") + (filled == 1 ? " was" : " were") + " filled for " + whom + ", " + seconds(savedMs) +
         " s saved";
}

// ---- At the end ----

// Ranks that say the same.
struct State {
  MitigationRow said;
  std::vector<int> ranks;

  bool holds(const MitigationRow& row) const {
    return row.mode == said.mode && row.armed == said.armed && row.text == said.text;
  }
};

// What most say first.
std::vector<State> statesOf(const JobReport& report) {
  std::vector<State> states;
  for (const auto& row : report.mitigation) {
    auto place = std::find_if(states.begin(), states.end(), [&row](const auto& state) { return state.holds(row); });
    if (place == states.end()) {
      place = states.insert(states.end(), {row, {}});
    }
    place->ranks.push_back(row.rank);
  }
  std::stable_sort(states.begin(), states.end(),
                   [](const auto& a, const auto& b) { return a.ranks.size() > b.ranks.size(); });
  return states;
}

std::string stateLines(const std::vector<State>& states) {
  std::string text;
  for (std::size_t i = 0; i < std::min(states.size(), kStatesListed); ++i) {
    const State& state = states[i];
    text += "Mitigation (" + state.said.mode +
            "): " + (states.size() > 1 ? "rank " + rankList(state.ranks) + " " : std::string()) +
            stateText(state.said) + "\n";
  }
  if (states.size() > kStatesListed) {
    text += "Mitigation: the other ranks say something else each\n";
  }
  return text;
}

bool isTouched(const MitigationRow& row) {
  return row.filledByProxy > 0 || row.late > 0 || row.applied > 0 || row.dropped > 0 || row.pending > 0;
}

std::vector<std::string> cells(const MitigationRow& row) {
  return {std::to_string(row.rank),
          std::to_string(row.filledByProxy),
          std::to_string(row.late),
          std::to_string(row.applied),
          std::to_string(row.dropped),
          std::to_string(row.pending),
          row.stalenessMean ? fixed(*row.stalenessMean, 2) : "-",
          row.stalenessMax ? std::to_string(*row.stalenessMax) : "-",
          seconds(row.savedMs)};
}

}  // namespace

std::string mitigationLine(const Verdict& verdict, const JobReport& report) {
  const auto rows = rowsOf(verdict, report);
  if (rows.empty()) {
    return {};
  }
  const bool alone = rows.size() == 1;
  const std::string filled = filledText(rows, alone ? "it" : "them");
  const bool any = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.filledByProxy > 0; });
  const MitigationRow& worst = rows.front();
  if (any && worst.armed) {
    return "  mitigation " + std::string(worst.mode == "drop" ? "drops" : "carries") + (alone ? " its" : " their") +
           " late gradients: " + filled + "\n";
  }
  return "  mitigation is " + stateText(worst) + (any ? "; " + filled : "") + "\n";
}

std::string mitigationTable(const JobReport& report) {
  const auto states = statesOf(report);
  std::vector<std::vector<std::string>> rows = {
      {"rank", "filled", "late", "applied", "dropped", "owed", "staleness", "max", "saved (s)"}};
  for (const auto& row : report.mitigation) {
    if (isTouched(row) || !states.front().holds(row)) {
      rows.push_back(cells(row));
    }
  }
  return stateLines(states) + (rows.size() > 1 ? table(rows) : "");
}

}  // namespace straggler
