#include "backend/report/brief_report.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/fakes/reports.h"

namespace straggler {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto place = text.find(part); place != std::string::npos; place = text.find(part, place + 1)) {
    ++found;
  }
  return found;
}

JobReport ofManyRanks(std::size_t ranks) {
  JobReport report = smallReport();
  report.worldSize = ranks;
  report.ranks.resize(ranks, report.ranks.front());
  report.groups.front().ranks.resize(ranks);
  std::iota(report.groups.front().ranks.begin(), report.groups.front().ranks.end(), 0);
  for (std::size_t i = 0; i < ranks; ++i) {
    report.ranks[i].rank = static_cast<int>(i);
  }
  return report;
}

TEST(BriefReport, holdsAllTotalsAndTheRowsOfTheRanksNamed) {
  const std::string json = briefJson(smallReport());
  EXPECT_TRUE(contains(json, R"("type":"report","world_size":2,)")) << json;
  EXPECT_TRUE(contains(json, R"("collectives":1200,)"));
  EXPECT_TRUE(contains(json, R"("kind":"straggler","ranks":[1],"hosts":["node-bb"],"group":"0",)"));
  EXPECT_TRUE(contains(json, R"("ranks":[{"rank":1,"host":"node-bb",)"));
  EXPECT_FALSE(contains(json, R"("host":"node-a")"));
  EXPECT_TRUE(contains(json, R"("skew":[])"));
  EXPECT_TRUE(contains(json, "the table of all ranks is kept on the reporting rank"));
}

TEST(BriefReport, mitigationIsToldOfTheRanksNamed) {
  const std::string json = briefJson(mitigatedReport());
  EXPECT_TRUE(contains(json, R"("mitigation":[{"rank":1,"mode":"carry",)")) << json;
  EXPECT_FALSE(contains(json, R"({"rank":0,"mode")"));
  JobReport report = ofManyRanks(100);
  report.verdict.ranks.resize(100);
  std::iota(report.verdict.ranks.begin(), report.verdict.ranks.end(), 0);
  for (int rank = 0; rank < 100; ++rank) {
    report.mitigation.push_back(mitigatedReport().mitigation.back());
    report.mitigation.back().rank = rank;
    report.mitigation.back().text = std::string(200, 'x');
  }
  EXPECT_LE(briefJson(report).size(), kMaxBriefBytes);
  EXPECT_TRUE(contains(briefJson(report), R"({"rank":7,"host")")) << "rows of mitigation go first";
}

TEST(BriefReport, isNoLargerForManyRanks) {
  const std::string json = briefJson(ofManyRanks(8192));
  EXPECT_LE(json.size(), kMaxBriefBytes);
  EXPECT_TRUE(contains(json, R"("world_size":8192,)"));
  EXPECT_TRUE(contains(json, R"("groups":[])")) << "the list of its members does not fit";
}

TEST(BriefReport, ofTheHistoryTheLatestFiveAreTold) {
  JobReport report = smallReport();
  report.history.resize(9);
  for (std::size_t i = 0; i < report.history.size(); ++i) {
    report.history[i].reason = "said as number " + std::to_string(i);
  }
  const std::string json = briefJson(report);
  EXPECT_EQ(count(json, "said as number"), 5U);
  EXPECT_TRUE(contains(json, "said as number 8"));
}

TEST(BriefReport, whatDoesNotFitIsLeftOutOldestFirst) {
  JobReport report = smallReport();
  report.history.resize(3);
  report.history.front().reason = std::string(3000, 'x');
  report.history.back().reason = "the last one";
  const std::string json = briefJson(report);
  EXPECT_LE(json.size(), kMaxBriefBytes);
  EXPECT_FALSE(contains(json, "xxx"));
  EXPECT_TRUE(contains(json, "the last one"));
}

TEST(BriefReport, ofManyNamedRanksTheFirstAreToldAndTheirNumber) {
  JobReport report = ofManyRanks(100);
  report.verdict.ranks.resize(100);
  std::iota(report.verdict.ranks.begin(), report.verdict.ranks.end(), 0);
  const std::string json = briefJson(report);
  EXPECT_LE(json.size(), kMaxBriefBytes);
  EXPECT_TRUE(contains(json, R"("ranks":[0,1,2,3,4,5,6,7],)"));
  EXPECT_TRUE(contains(json, "100 ranks are named, of which the first 8 are told here"));
}

TEST(BriefReport, whatTheSystemCountedIsToldOfTheVerdictAloneAndWhereItFits) {
  JobReport report = smallReport();
  report.verdict.evidence.os.set(OsCounter::kBlockIo, 6.25);
  report.verdict.evidence.osPeers.set(OsCounter::kBlockIo, 0.125);
  report.history = {report.verdict};
  const std::string json = briefJson(report);
  EXPECT_EQ(count(json, R"("block_io_ms":6.25,)"), 1U);
  EXPECT_EQ(count(json, R"("block_io_ms":0.125,)"), 1U);
  EXPECT_EQ(count(json, R"("os":null)"), 1U) << "of the history";
  report.verdict.reason = std::string(3000, 'x');
  const std::string longer = briefJson(report);
  EXPECT_FALSE(longer.empty());
  EXPECT_EQ(count(longer, "block_io_ms"), 0U);
}

TEST(BriefReport, isNothingWhereNotEvenTheVerdictFits) {
  JobReport report = smallReport();
  report.verdict.reason = std::string(kMaxBriefBytes, 'x');
  EXPECT_EQ(briefJson(report), "");
}

}  // namespace
}  // namespace straggler
