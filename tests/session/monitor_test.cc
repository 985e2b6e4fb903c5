// What a rank tells. When the transport fails it: monitor_transport_test.cc. How much it tells: monitor_rate_test.cc.
#include "backend/session/monitor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/fakes/simulated_rank.h"
#include "tests/fakes/temporary_folder.h"

namespace straggler {
namespace {

const GroupInfo kWorld{"world", "default_pg", "gloo", {0, 1}};

TEST(Monitor, helloIsTheFirstMessage) {
  SimulatedRank rank({.rank = 1});
  rank.step();
  ASSERT_FALSE(rank.exchange->sent.empty());
  EXPECT_EQ(rank.exchange->sent.front().rank, 1);
  EXPECT_EQ(rank.exchange->sent.front().messages.front(), Message(RankHello{"host-a", 1001, "clock-a"}));
  rank.steps(100);
  EXPECT_EQ(rank.exchange->messages<RankHello>().size(), 1U);
}

TEST(Monitor, groupIsToldByItsFirstRankOnly) {
  SimulatedRank first({.rank = 0});
  SimulatedRank second({.rank = 1});
  first.steps(20);
  second.steps(20);
  EXPECT_EQ(first.exchange->messages<GroupInfo>(), std::vector<GroupInfo>{kWorld});
  EXPECT_TRUE(second.exchange->messages<GroupInfo>().empty());
}

TEST(Monitor, groupThatIsMadeLaterIsToldToo) {
  SimulatedRank rank;
  rank.steps(20);
  rank.monitor->addGroup({"sub", "", "gloo", {0}});
  rank.steps(20);
  EXPECT_EQ(rank.exchange->messages<GroupInfo>().back().name, "sub");
}

TEST(Monitor, windowsAreAlignedAndTellEveryStepOnce) {
  SimulatedRank rank;
  rank.steps(95);
  EXPECT_TRUE(rank.finish());
  std::int64_t next = 0;
  for (const auto& window : rank.exchange->messages<StepWindow>()) {
    EXPECT_EQ(window.firstStep, next);
    EXPECT_EQ(window.firstStep % 10, 0);
    EXPECT_EQ(window.foundBy, StepsFoundBy::kGraphTask);
    next += static_cast<std::int64_t>(window.selfUs.size());
  }
  EXPECT_EQ(next, 95) << "the last window is told though it is not full";
}

TEST(Monitor, windowTellsSelfTimeAndLength) {
  SimulatedRank rank;
  rank.steps(30, 30, 4);
  rank.finish();
  const StepWindow window = rank.exchange->messages<StepWindow>().at(1);
  // The last of four buckets arrives at 24 ms of 30: then the rank is blocked.
  EXPECT_EQ(window.selfUs, std::vector<std::uint32_t>(10, 24'000));
  EXPECT_EQ(window.durationUs, 300'000U);
}

TEST(Monitor, samplesTellArrivalAndCompletion) {
  SimulatedRank rank;
  rank.steps(1, 30, 2);
  rank.finish();
  const auto samples = rank.exchange->messages<ArrivalSamples>();
  ASSERT_EQ(samples.size(), 1U);
  ASSERT_EQ(samples[0].operations.size(), 2U);
  EXPECT_EQ(samples[0].operations[1].key, (OpKey{kWorld.id(), 1, OpKind::kAllReduce}));
  EXPECT_EQ(samples[0].operations[1].arrival, at(1e6 + 20));
  EXPECT_EQ(samples[0].operations[1].completed, at(1e6 + 30));
}

TEST(Monitor, failedAndPointToPointOperationsAreNotSampled) {
  SimulatedRank rank;
  rank.recorder->failed(rank.recorder->enter(entered(OpKind::kAllReduce, 1, kWorld.id())));
  rank.recorder->abandoned(rank.recorder->enter(entered(OpKind::kSend, 1, kWorld.id())));
  rank.finish();
  EXPECT_TRUE(rank.exchange->messages<ArrivalSamples>().empty());
}

TEST(Monitor, countersAreToldEveryTwoSeconds) {
  SimulatedRank rank;
  rank.steps(334, 30, 1);
  const auto counters = rank.exchange->messages<RankCounters>();
  EXPECT_GE(counters.size(), 5U);
  EXPECT_LE(counters.size(), 6U);
  EXPECT_FALSE(counters.back().final);
}

TEST(Monitor, finishSendsEverythingThatIsStillOpen) {
  SimulatedRank rank;
  rank.steps(3);
  rank.recorder->enter(entered(OpKind::kAllReduce, 1e6, kWorld.id()));
  EXPECT_TRUE(rank.finish());
  EXPECT_EQ(rank.exchange->messages<StepWindow>().back().selfUs.size(), 3U);
  const auto counters = rank.exchange->messages<RankCounters>();
  EXPECT_EQ(counters.back(), (RankCounters{13, 0, 0, 0, true}));
  EXPECT_TRUE(rank.finish()) << "a second time";
  EXPECT_EQ(rank.exchange->messages<RankCounters>().size(), counters.size()) << "sends nothing twice";
}

// ---- Mitigation ----

// What a source would give, and how often it was asked.
struct Mitigation {
  MitigationSummary summary{true, "carry", "gradients of group 0"};
  int asked = 0;
  MitigationSource source() {
    return [this] {
      ++asked;
      return summary;
    };
  }
};

TEST(Monitor, mitigationIsToldWhenItChangedAndAWindowClosed) {
  SimulatedRank rank;
  Mitigation mitigation;
  rank.monitor->setMitigation(mitigation.source());
  rank.steps(9);
  EXPECT_EQ(mitigation.asked, 0) << "no window is closed";
  rank.steps(200);
  EXPECT_GT(mitigation.asked, 1);
  EXPECT_EQ(rank.exchange->messages<MitigationSummary>(), std::vector<MitigationSummary>{mitigation.summary});
  mitigation.summary.late = 1;
  rank.steps(50);
  EXPECT_EQ(rank.exchange->messages<MitigationSummary>().size(), 2U);
  EXPECT_EQ(rank.exchange->messages<MitigationSummary>().back().late, 1U);
}

TEST(Monitor, mitigationIsToldAtMostOnceASecond) {
  SimulatedRank rank;
  Mitigation mitigation;
  rank.monitor->setMitigation([&mitigation] {
    ++mitigation.summary.late;
    return mitigation.summary;
  });
  rank.steps(1000, 5);  // five seconds of windows of 50 ms
  EXPECT_GE(rank.exchange->messages<MitigationSummary>().size(), 4U);
  EXPECT_LE(rank.exchange->messages<MitigationSummary>().size(), 5U);
}

TEST(Monitor, mitigationThatChangedIsToldAtTheEndBeforeTheLastCounters) {
  SimulatedRank rank;
  Mitigation mitigation;
  rank.monitor->setMitigation(mitigation.source());
  rank.steps(25);
  mitigation.summary.pending = 2;
  EXPECT_TRUE(rank.finish());
  const auto& last = rank.exchange->sent.back().messages;
  const auto told = std::find(last.begin(), last.end(), Message(mitigation.summary));
  ASSERT_NE(told, last.end());
  EXPECT_TRUE(std::get<RankCounters>(*(told + 1)).final);
}

TEST(Monitor, mitigationWithoutWindowsIsToldAtTheEnd) {
  SimulatedRank rank;
  Mitigation mitigation;
  mitigation.summary = {false, "carry", "only Gloo is mitigated"};
  rank.monitor->setMitigation(mitigation.source());
  rank.finish();
  EXPECT_EQ(rank.exchange->messages<MitigationSummary>(), std::vector<MitigationSummary>{mitigation.summary});
}

TEST(Monitor, withoutMitigationNothingIsToldOfIt) {
  SimulatedRank rank;
  rank.steps(50);
  rank.monitor->setMitigation([] { return std::nullopt; });
  rank.steps(50);
  rank.monitor->setMitigation({});
  rank.steps(50);
  rank.finish();
  EXPECT_TRUE(rank.exchange->messages<MitigationSummary>().empty());
}

TEST(Monitor, sourceThatThrowsIsAskedNoMoreAndOneLineSaysSo) {
  SimulatedRank rank;
  int asked = 0;
  rank.monitor->setMitigation([&asked]() -> std::optional<MitigationSummary> {
    ++asked;
    throw std::runtime_error("no such rank");
  });
  rank.steps(200);
  EXPECT_TRUE(rank.finish());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(rank.complaints, std::vector<std::string>{"what mitigation does is not reported any more: no such rank"});
  EXPECT_EQ(rank.exchange->messages<StepWindow>().size(), 20U) << "all else goes on";
}

// ---- The end ----

TEST(Monitor, finishWaitsForACompletionThatIsOnItsWay) {
  SimulatedRank rank;
  const Ticket ticket = rank.recorder->enter(entered(OpKind::kAllReduce, 1e6, kWorld.id()));
  rank.recorder->issued(ticket, at(1e6));
  EXPECT_FALSE(rank.monitor->finish(rank.clock.now()));
  rank.recorder->completed(ticket, {at(1e6 + 1), StampSource::kFuture}, false);
  EXPECT_TRUE(rank.monitor->finish(rank.clock.now()));
  EXPECT_EQ(rank.exchange->messages<ArrivalSamples>().at(0).operations.at(0).completed, at(1e6 + 1));
}

TEST(Monitor, droppedAndCapturedOperationsAreCounted) {
  SimulatedRank rank;
  for (std::size_t i = 0; i < Recorder::kDefaultCapacity + 3; ++i) {
    rank.recorder->enter(entered(OpKind::kAllReduce, 1, kWorld.id()));
  }
  rank.recorder->sawCapture();
  rank.finish();
  const RankCounters last = rank.exchange->messages<RankCounters>().back();
  EXPECT_EQ(last.recordsDropped, 3U);
  EXPECT_EQ(last.captured, 1U);
}

// One blocking call: in it from now on for `blockedMs`.
void blockingCall(SimulatedRank& rank, OpKind kind, double blockedMs) {
  Operation operation = entered(kind, 0, kWorld.id());
  operation.arrival = {rank.clock.now(), StampSource::kHost};
  operation.asynchronous = true;
  const Ticket ticket = rank.recorder->enter(operation);
  rank.recorder->issued(ticket, rank.clock.now());
  rank.recorder->waiting(ticket, rank.clock.now());
  rank.clock.advance(ms(blockedMs));
  rank.recorder->released(ticket, {rank.clock.now(), StampSource::kWait});
}

TEST(Monitor, pipelineRankThatOnlySendsAndReceivesHasStepsAndIsNotChargedForItsWaits) {
  SimulatedRank rank;
  for (int step = 0; step < 100; ++step) {
    rank.clock.advance(ms(7));
    blockingCall(rank, OpKind::kSend, step < 60 ? 1 : 40);  // the link becomes slow
    blockingCall(rank, OpKind::kRecv, 5);
    rank.clock.advance(ms(3));
    rank.monitor->round(rank.clock.now());
  }
  rank.finish();
  const auto windows = rank.exchange->messages<StepWindow>();
  ASSERT_GE(windows.size(), 4U);
  for (const auto& window : windows) {
    EXPECT_EQ(window.foundBy, StepsFoundBy::kOpPeriod);
    for (const std::uint32_t self : window.selfUs) {
      EXPECT_EQ(self, 10'000U);
    }
  }
  EXPECT_EQ(windows.front().durationUs, 160'000U);
  EXPECT_GT(windows.back().durationUs / windows.back().selfUs.size(), 50'000U);
}

TEST(Monitor, programIsToldBeforeTheFirstWindowAndOnlyWhenItChanges) {
  SimulatedRank rank;
  rank.steps(200);
  rank.finish();
  EXPECT_EQ(rank.exchange->messages<RankProgram>(), (std::vector<RankProgram>{{{{kWorld.id(), OpKind::kAllReduce}}}}));
  bool told = false;
  for (const auto& frame : rank.exchange->sent) {
    for (const auto& message : frame.messages) {
      told = told || std::holds_alternative<RankProgram>(message);
      EXPECT_TRUE(told || !std::holds_alternative<StepWindow>(message));
    }
  }
}

TEST(Monitor, whatARankDoesNowAndThenIsNoPartOfItsProgram) {
  SimulatedRank rank;
  for (int step = 0; step < 200; ++step) {
    if (step > 10 && step % 25 == 0) {
      blockingCall(rank, OpKind::kBroadcast, 1);
    }
    rank.step();
  }
  rank.finish();
  EXPECT_EQ(rank.exchange->messages<RankProgram>().size(), 1U);
}

TEST(Monitor, whatARankDoesInThreeWindowsInARowBelongsToItsProgramUntilItEnds) {
  SimulatedRank rank;
  rank.steps(30);
  for (int step = 0; step < 40; ++step) {
    blockingCall(rank, OpKind::kBarrier, 1);
    rank.step();
  }
  rank.steps(40);
  rank.finish();
  const OperationUse reduces{kWorld.id(), OpKind::kAllReduce};
  const OperationUse waits{kWorld.id(), OpKind::kBarrier};
  EXPECT_EQ(rank.exchange->messages<RankProgram>(),
            (std::vector<RankProgram>{{{reduces}}, {{reduces, waits}}, {{reduces}}}));
}

TEST(Monitor, everyOperationIsWrittenToTheRecords) {
  const TemporaryFolder folder;
  auto file = std::make_unique<RecordFile>(folder.path().string(), "rank-00000.jsonl", [](const auto&) {});
  SimulatedRank rank({.operations = std::move(file)});
  rank.steps(25, 30, 4);
  rank.finish();
  const auto lines = linesOf(folder / "rank-00000.jsonl");
  ASSERT_EQ(lines.size(), 100U);
  EXPECT_NE(lines.back().find(R"("process_group":["world","default_pg"],"collective_seq_id":99)"), std::string::npos);
}

TEST(Monitor, recordsThatCouldNotBeWrittenCountAsDropped) {
  SimulatedRank rank({.operations = std::make_unique<RecordFile>("/dev", "full", [](const auto&) {})});
  rank.steps(25, 30, 4);
  rank.finish();
  EXPECT_EQ(rank.exchange->messages<RankCounters>().back().recordsDropped, 100U);
}

TEST(Monitor, diskThatBlocksDoesNotHoldUpANewGroup) {
  // A pipe that nobody reads stands for a disk that does not answer.
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int reader = open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  SimulatedRank rank({.operations = std::make_unique<RecordFile>(folder.path().string(), "pipe", [](const auto&) {})});
  for (int i = 0; i < 1000; ++i) {
    rank.recorder->failed(rank.recorder->enter(entered(OpKind::kAllReduce, 1, kWorld.id())));
  }
  auto turn = std::async(std::launch::async, [&rank] { rank.monitor->round(rank.clock.now()); });
  std::array<char, 1> first{};
  while (read(reader, first.data(), 1) != 1) {  // until the monitor has begun to write
    std::this_thread::yield();
  }
  auto added = std::async(std::launch::async, [&rank] { rank.monitor->addGroup({"sub", "", "gloo", {0}}); });
  EXPECT_EQ(added.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(turn.wait_for(std::chrono::seconds(0)), std::future_status::timeout)
      << "the pipe holds less than was written";
  std::array<char, 65536> piece{};
  while (turn.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    while (read(reader, piece.data(), piece.size()) > 0) {
    }
  }
  close(reader);
}

TEST(Monitor, withoutATransportItRecordsOnly) {
  SimulatedRank rank({.connected = false});
  rank.steps(50);
  EXPECT_TRUE(rank.finish());
  EXPECT_EQ(rank.exchange->sendCalls + rank.exchange->leavingCalls, 0U);
  EXPECT_TRUE(rank.complaints.empty());
}

}  // namespace
}  // namespace straggler
