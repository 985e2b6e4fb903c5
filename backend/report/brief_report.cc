#include "backend/report/brief_report.h"

#include <algorithm>
#include <utility>

#include "backend/report/json_records.h"

namespace straggler {
namespace {

constexpr std::size_t kHistoryKept = 5;
constexpr std::size_t kRanksKept = 8;     // of one verdict
constexpr std::size_t kMembersKept = 64;  // a group with more is left out
constexpr const char* kNote = "this is the brief report; the table of all ranks is kept on the reporting rank";

// Every rank that is named stays in the verdict, up to a number; a note says how many there are.
void shorten(Verdict& verdict, JobReport& brief) {
  if (verdict.ranks.size() > kRanksKept) {
    brief.notes.push_back(std::to_string(verdict.ranks.size()) + " ranks are named, of which the first " +
                          std::to_string(kRanksKept) + " are told here");
    verdict.ranks.resize(kRanksKept);
  }
}

// Of rows, those of the ranks that are named.
template <class Row>
void keepNamed(std::vector<Row>& rows, const Verdict& verdict) {
  std::erase_if(rows, [&named = verdict.ranks](const Row& row) {
    return std::find(named.begin(), named.end(), row.rank) == named.end();
  });
}

JobReport shortened(JobReport report) {
  report.notes.insert(report.notes.begin(), kNote);
  if (report.history.size() > kHistoryKept) {
    report.history.erase(report.history.begin(), report.history.end() - kHistoryKept);
  }
  shorten(report.verdict, report);
  for (auto& said : report.history) {
    said.ranks.resize(std::min(said.ranks.size(), kRanksKept));
    said.evidence.os = said.evidence.osPeers = {};
  }
  keepNamed(report.ranks, report.verdict);
  report.skew.clear();
  report.clockRows.clear();
  keepNamed(report.mitigation, report.verdict);
  std::erase_if(report.groups, [](const GroupInfo& group) { return group.ranks.size() > kMembersKept; });
  return report;
}

// Leaves out what is worth least; says whether there was anything.
bool leaveOut(JobReport& brief) {
  if (!brief.history.empty()) {
    brief.history.erase(brief.history.begin());
  } else if (!brief.groups.empty()) {
    brief.groups.pop_back();
  } else if (!brief.mitigation.empty()) {
    brief.mitigation.pop_back();
  } else if (!brief.ranks.empty()) {
    brief.ranks.pop_back();
  } else if (OsEvidence& os = brief.verdict.evidence.os; !os.empty()) {
    os = brief.verdict.evidence.osPeers = {};
  } else if (brief.notes.size() > 1) {
    brief.notes.pop_back();
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string briefJson(const JobReport& report) {
  JobReport brief = shortened(report);
  std::string json = toJson(brief);
  while (json.size() > kMaxBriefBytes) {
    if (!leaveOut(brief)) {
      return {};
    }
    json = toJson(brief);
  }
  return json;
}

}  // namespace straggler
