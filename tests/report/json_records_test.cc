// What the lines say. That each of them keeps to records.schema.json is checked by test_record_schema.py, on the lines
// that the last test here writes down.
#include "backend/report/json_records.h"

#include <fstream>

#include <gtest/gtest.h>

#include "backend/report/json_reporter.h"
#include "backend/report/participation_records.h"
#include "tests/fakes/operations.h"
#include "tests/fakes/reports.h"
#include "tests/fakes/slot_operations.h"
#include "tests/fakes/temporary_folder.h"

namespace straggler {
namespace {

const GroupInfo kGroup{"0", "default_pg", "gloo", {0, 1}};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

ArrivalSamples samples() {
  return {4, {{{kGroup.id(), 17, OpKind::kAllReduce}, at(5), at(6)}, {{kGroup.id(), 21, OpKind::kBarrier}, at(7), {}}}};
}

Operation failedReceive() {
  Operation operation = entered(OpKind::kRecv, 3);
  operation.method = "recv";
  operation.dtype = "";
  operation.asynchronous = true;
  operation.trainingThread = false;
  operation.failed = true;
  operation.issued = operation.completed = operation.waited = operation.released = Stamp::unknown();
  return operation;
}

JobReport emptyReport() {
  JobReport report;
  report.worldSize = 1;
  report.ranks = {{}};
  return report;
}

// Every other one of them.
OsCounters someCounters() {
  OsCounters counters;
  for (std::size_t i = 0; i < kOsCounters; i += 2) {
    counters[static_cast<OsCounter>(i)] = 1'000 * i;
  }
  return counters;
}

StepWindow countedWindow() {
  StepWindow window{140, 1, StepsFoundBy::kGraphTask, {25'000}, 34'000};
  window.os = someCounters();
  return window;
}

Verdict countedVerdict() {
  Verdict verdict = smallReport().verdict;
  verdict.evidence.os = OsEvidence(someCounters(), 10);
  verdict.evidence.osPeers = OsEvidence(someCounters(), 20);
  return verdict;
}

Verdict evidentVerdict() {
  Verdict verdict = smallReport().verdict;
  verdict.step = 59;
  verdict.cause = "host_input";
  verdict.rule = "median";
  verdict.evidence = {3, 7.5, 0.25, 0.5, 60, 0.97, 0.001};
  return verdict;
}

JobReport reportWithHistory() {
  JobReport report = smallReport();
  report.history = {evidentVerdict(), Verdict{}};
  return report;
}

Verdict networkVerdict() {
  Verdict verdict;
  verdict.kind = VerdictKind::kNetwork;
  verdict.cause = "network";
  verdict.group = "dp1";
  verdict.excessMs = 48;
  return verdict;
}

// At least one line of every type, with and without what can be missing.
std::vector<std::string> oneOfEach() {
  return {
      toJson(SessionStart{{0, 1}, 10, 1'700'000'000'000'000'000}),
      toJson(1, RankHello{"node-a", 12345, "boot/time:[1]"}),
      toJson(0, kGroup),
      toJson(1, StepWindow{120, 2, StepsFoundBy::kGraphTask, {25'000, 25'100}, 68'000}),
      toJson(1, StepWindow{}),
      toJson(1, StepWindow{130, 2, StepsFoundBy::kGraphTask, {25'000}, 34'000, 700, 4'000, 0}),
      toJson(1, samples()),
      toJson(1, RankCounters{900, 1, 2, 3, true}),
      toJson(1, ClockReading{at(10'001), at(10'002), at(1), at(2)}),
      toJson(1, MitigationSummary{true, "carry", "group 0", 41, 40, 37, 1, 2, 74, 5, 3'250'000}),
      toJson(1, MitigationSummary{false, "drop", "only Gloo is mitigated"}),
      toJson(1, RankProgram{{{1, OpKind::kAllReduce}, {9, OpKind::kSend}}}),
      participationStart(1, 4, MitigationMode::kCarry, 8),
      toJson(1, Participation{7, 5, bucketOf(2)}),
      toJson(1, Participation{6, 5, broadcastFrom(3)}),
      toJson(1, kGroup, synchronous(1, 2)),
      toJson(1, kGroup, waited(1, 2, 3)),
      toJson(1, kGroup, bucket(7, 1, 3)),
      toJson(1, kGroup, failedReceive()),
      toJson(smallReport().verdict, smallReport()),
      toJson(evidentVerdict(), smallReport()),
      toJson(1, countedWindow()),
      toJson(countedVerdict(), smallReport()),
      toJson(Verdict{}, emptyReport()),
      toJson(networkVerdict(), smallReport()),
      toJson(smallReport()),
      toJson(reportWithHistory()),
      toJson(mitigatedReport()),
      toJson(clocksReport()),
      toJson(emptyReport()),
  };
}

TEST(JsonRecords, operationSaysWhereItsTimesComeFrom) {
  EXPECT_EQ(toJson(1, kGroup, waited(1, 2, 3)),
            R"({"schema":1,"type":"operation","rank":1,"process_group":["0","default_pg"],"collective_seq_id":0,)"
            R"("is_p2p":false,"kind":"all_reduce","method":"allreduce","input_dtypes":["Float"],"bytes":4096,)"
            R"("async":true,"graph_task":null,"training_thread":true,"state":"completed","arrival_ns":1000000,)"
            R"("arrival_from":"host","issued_ns":1000000,"completed_ns":3000000,"completed_from":"future",)"
            R"("waited_ns":2000000,"released_ns":3000000,"released_from":"wait"})");
}

TEST(JsonRecords, whatIsNotKnownIsNullAndNeverZero) {
  const std::string line = toJson(1, kGroup, failedReceive());
  EXPECT_TRUE(contains(line, R"("collective_seq_id":null,"is_p2p":true)"));
  EXPECT_TRUE(contains(line, R"("input_dtypes":[])"));
  EXPECT_TRUE(contains(line, R"("state":"failed")"));
  EXPECT_TRUE(contains(line, R"("issued_ns":null,"completed_ns":null,"completed_from":null,"waited_ns":null,)"
                             R"("released_ns":null,"released_from":null})"));
}

TEST(JsonRecords, evidenceThatWasNotMeasuredIsNull) {
  EXPECT_TRUE(contains(toJson(1, StepWindow{}), R"("input_us":null,"cpu_us":null,"run_delay_us":null)"));
  StepWindow window;
  window.inputUs = 0;
  window.cpuUs = 4'000;
  EXPECT_TRUE(contains(toJson(1, window), R"("input_us":0,"cpu_us":4000,"run_delay_us":null)"));
}

TEST(JsonRecords, windowTellsWhatTheSystemCountedAndNullWhereItDoesNot) {
  StepWindow window;
  window.os[OsCounter::kMajorFaults] = 0;
  window.os[OsCounter::kBlockIo] = 60'000;
  EXPECT_TRUE(
      contains(toJson(1, window),
               R"("voluntary_switches":null,"involuntary_switches":null,"major_faults":0,"block_io_us":60000,)"
               R"("workers_block_io_us":null,"read_bytes":null,"read_call_bytes":null,"received_bytes":null,)"
               R"("sent_bytes":null,"retransmits":null,"cpu_pressure_us":null,"io_pressure_us":null,)"
               R"("io_full_pressure_us":null,"memory_pressure_us":null,"memory_full_pressure_us":null,)"
               R"("quota_throttles":null,"quota_throttled_us":null,"sm_clock_mhz":null,"device_temperature_c":null,)"
               R"("device_slowed_by_heat":null,"device_slowed_by_power":null,"rank":1})"));
}

TEST(JsonRecords, operationWithoutACompletionIsUnknown) {
  Operation operation = waited(1, 2, 3);
  operation.completed = Stamp::unknown();
  EXPECT_TRUE(contains(toJson(1, kGroup, operation), R"("state":"unknown")"));
}

TEST(JsonRecords, verdictHasTheFieldsThatOthersRelyOn) {
  EXPECT_EQ(toJson(smallReport().verdict, smallReport()),
            R"({"schema":1,"type":"verdict","kind":"straggler","ranks":[1],"hosts":["node-bb"],"group":"0",)"
            R"("cause":"not_attributed","excess_ms":8.07,"share":0.2374,"since_step":35,"confidence":0.999,)"
            R"("reason":"self time 8.07 ms a step above the median of its peers","step":null,"rule":"self_time",)"
            R"("windows":0,"input_ms":null,"cpu_ms":null,"run_delay_ms":null,"operations_compared":0,)"
            R"("last_share":null,"last_p_value":null,"os":null,"os_peers":null})");
}

TEST(JsonRecords, verdictOnOneGroupTellsThatGroup) {
  EXPECT_TRUE(contains(toJson(networkVerdict(), smallReport()),
                       R"("kind":"network","ranks":[],"hosts":[],"group":"dp1","cause":"network",)"));
}

TEST(JsonRecords, verdictTellsItsEvidence) {
  EXPECT_TRUE(
      contains(toJson(evidentVerdict(), smallReport()),
               R"("step":59,"rule":"median","windows":3,"input_ms":7.5,"cpu_ms":0.25,"run_delay_ms":0.5,)"
               R"("operations_compared":60,"last_share":0.97,"last_p_value":0.001,"os":null,"os_peers":null})"));
}

TEST(JsonRecords, verdictTellsWhatTheSystemCountedAStepBesideThePeers) {
  Verdict verdict = evidentVerdict();
  verdict.evidence.os.set(OsCounter::kBlockIo, 6.1);
  verdict.evidence.os.set(OsCounter::kReadBytes, 240'000);
  verdict.evidence.osPeers.set(OsCounter::kBlockIo, 0);
  const std::string line = toJson(verdict, smallReport());
  EXPECT_TRUE(contains(line, R"("os":{"voluntary_switches":null,"involuntary_switches":null,"major_faults":null,)"
                             R"("block_io_ms":6.1,"workers_block_io_ms":null,"read_bytes":240000,)"));
  EXPECT_TRUE(contains(line, R"("device_slowed_by_power":null},"os_peers":{"voluntary_switches":null,)"));
  EXPECT_TRUE(contains(line, R"("block_io_ms":0,"workers)"));
}

TEST(JsonRecords, reportTellsWhatWasSaidBeforeAndHowManyWindowsWereCompared) {
  JobReport report = smallReport();
  report.history = {evidentVerdict(), report.verdict};
  report.windowsCompared = 30;
  report.windowsIncomplete = 2;
  report.windowsLate = 1;
  const std::string line = toJson(report);
  EXPECT_TRUE(contains(line, R"("history":[{"kind":"straggler","ranks":[1],"hosts":["node-bb"],)")) << line;
  EXPECT_TRUE(contains(line, R"("windows_compared":30,"windows_incomplete":2,"windows_late":1,)")) << line;
}

TEST(JsonRecords, clockReadingTellsItsFourTimes) {
  EXPECT_EQ(
      toJson(1, ClockReading{at(10'001), at(10'002), at(1), at(2)}),
      R"({"schema":1,"type":"clock","root_before_ns":10001000000,"root_after_ns":10002000000,"before_ns":1000000,)"
      R"("after_ns":2000000,"rank":1})");
}

TEST(JsonRecords, sampleTellsWhetherItsArrivalWasPolled) {
  ArrivalSamples told = samples();
  told.operations[1].polled = true;
  EXPECT_TRUE(contains(toJson(1, told), R"("completed_ns":6000000,"size_class":0,"polled":false})"));
  EXPECT_TRUE(contains(toJson(1, told), R"("completed_ns":null,"size_class":0,"polled":true})"));
}

TEST(JsonRecords, mitigationTellsItsTotals) {
  EXPECT_EQ(toJson(1, MitigationSummary{true, "carry", "group 0", 41, 40, 37, 1, 2, 74, 5, 3'250'000}),
            R"({"schema":1,"type":"mitigation","mode":"carry","armed":true,"text":"group 0","filled_by_proxy":41,)"
            R"("late":40,"applied":37,"dropped":1,"pending":2,"staleness_sum":74,"staleness_max":5,)"
            R"("saved_us":3250000,"rank":1})");
}

TEST(JsonRecords, reportHasARowForEachRankThatToldOfMitigation) {
  EXPECT_TRUE(contains(toJson(smallReport()), R"("mitigation":[],"notes":)"));
  const std::string line = toJson(mitigatedReport());
  EXPECT_TRUE(contains(line, R"("late":0,"applied":0,"dropped":0,"pending":0,"staleness_mean":null,)"
                             R"("staleness_max":null,"saved_ms":0})"))
      << line;
  EXPECT_TRUE(contains(line, R"({"rank":1,"mode":"carry","armed":true,"text":"gradients of group 0, quorum 1 of 2",)"
                             R"("filled_by_proxy":41,"late":40,"applied":37,"dropped":1,"pending":2,)"
                             R"("staleness_mean":2,"staleness_max":5,"saved_ms":3250}],"notes":)"))
      << line;
}

TEST(JsonRecords, reportHasARowForEachClockButTheRoots) {
  EXPECT_TRUE(contains(toJson(smallReport()), R"("clock_offsets":[],)"));
  EXPECT_TRUE(contains(toJson(clocksReport()),
                       R"("clock_offsets":[{"ranks":[2,3],"at_ns":5000000000,"offset_ms":10000.125,)"
                       R"("offset_bound_ms":0.25,"drift_ppm":-100,"drift_bound_ppm":4.5,"drift_span_ms":118000,)"
                       R"("leaps":1},{"ranks":[4],"at_ns":null,"offset_ms":null,"offset_bound_ms":null,)"
                       R"("drift_ppm":null,"drift_bound_ppm":null,"drift_span_ms":null,"leaps":0}])"))
      << toJson(clocksReport());
}

TEST(JsonRecords, sessionTellsTheRuleForAReplay) {
  EXPECT_EQ(
      toJson(SessionStart{{0, 1}, 10, 7, "median", 3.5}),
      R"({"schema":1,"type":"session","ranks":[0,1],"window":10,"unix_time_ns":7,"rule":"median","multiplier":3.5})");
}

TEST(JsonRecords, abstainingVerdictHasNoNumbers) {
  EXPECT_TRUE(
      contains(toJson(Verdict{}, emptyReport()),
               R"("kind":"abstain","ranks":[],"hosts":[],"group":null,"cause":"not_attributed","excess_ms":null,)"
               R"("share":null,"since_step":null,"confidence":null)"));
}

TEST(JsonRecords, rankThatToldNothingHasNullsInTheReport) {
  EXPECT_TRUE(
      contains(toJson(emptyReport()), R"("ranks":[{"rank":0,"host":null,"pid":null,"steps":0,"step_ms":null,)"));
}

TEST(JsonRecords, everyLineIsOneLine) {
  for (const auto& line : oneOfEach()) {
    EXPECT_FALSE(contains(line, "\n"));
    EXPECT_TRUE(line.starts_with(R"({"schema":1,"type":")")) << line;
  }
}

TEST(JsonReporter, writesTheSessionTheFramesTheVerdictAndTheReport) {
  const TemporaryFolder folder;
  JsonReporter reporter(std::make_unique<RecordFile>(folder.path().string(), "job.jsonl", [](const auto&) {}));
  reporter.started({{0, 1}, 10, 1});
  reporter.received({1, {RankHello{"h", 1, "c"}, RankCounters{}}});
  EXPECT_EQ(linesOf(folder / "job.jsonl").size(), 3U) << "written while the job runs, not at its end";
  reporter.ended(smallReport());
  const auto lines = linesOf(folder / "job.jsonl");
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[3], toJson(smallReport().verdict, smallReport()));
  EXPECT_EQ(lines[4], toJson(smallReport()));
  EXPECT_EQ(reporter.recordsLost(), 0U);
}

TEST(JsonReporter, verdictIsWrittenWhenItIsToldAndNotAgainAtTheEnd) {
  const TemporaryFolder folder;
  JsonReporter reporter(std::make_unique<RecordFile>(folder.path().string(), "job.jsonl", [](const auto&) {}));
  JobReport report = smallReport();
  reporter.changed(report.verdict, report);
  EXPECT_EQ(linesOf(folder / "job.jsonl"), std::vector<std::string>{toJson(report.verdict, report)});
  report.verdict.excessMs = 9;  // its figures have moved on
  reporter.ended(report);
  EXPECT_EQ(linesOf(folder / "job.jsonl").size(), 2U) << "the report alone";
}

TEST(JsonRecords, participationTellsTheSlotAndHowFarTheRankWas) {
  EXPECT_EQ(participationStart(3, 4, MitigationMode::kDrop, 8),
            R"({"schema":1,"type":"participation_start","rank":3,"world_size":4,"mode":"drop","staleness":8})");
  EXPECT_EQ(toJson(3, Participation{7, 5, bucketOf(2)}),
            R"({"schema":1,"type":"participation","rank":3,"slot":7,"reached":5,"kind":"all_reduce","bucket":2,)"
            R"("root":0,"reduction":0,"dtype":6,"elements":64,"bytes":256,"scale":1})");
}

TEST(JsonReporter, verdictThatWasNeverToldIsWrittenAtTheEnd) {
  const TemporaryFolder folder;
  JsonReporter reporter(std::make_unique<RecordFile>(folder.path().string(), "job.jsonl", [](const auto&) {}));
  JobReport report = smallReport();
  reporter.changed(report.verdict, report);
  report.verdict = {};
  reporter.ended(report);
  const auto lines = linesOf(folder / "job.jsonl");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1], toJson(Verdict{}, report));
}

TEST(JsonRecords, oneOfEachIsWrittenDownForTheSchemaTest) {
  std::ofstream file(STRAGGLER_RECORD_LINES, std::ios::trunc);
  for (const auto& line : oneOfEach()) {
    file << line << "\n";
  }
  EXPECT_TRUE(file.good()) << STRAGGLER_RECORD_LINES;
}

}  // namespace
}  // namespace straggler
