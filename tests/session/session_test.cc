// Sessions with their real threads: nothing here sleeps for a fixed time; conditions are waited for, and bounded. Forked
// children: session_fork_test.cc.
#include "backend/session/session.h"

#include <gtest/gtest.h>

#include "tests/fakes/recording_log.h"
#include "tests/fakes/sessions.h"

namespace straggler {
namespace {

bool contains(const std::optional<std::string>& text, const std::string& part) {
  return text && text->find(part) != std::string::npos;
}

class SessionTest : public testing::Test {
 protected:
  ~SessionTest() override { endSession(); }
  std::shared_ptr<Session> join(const std::string& group = "0") {
    return joinSession({group, "", "gloo", {0}}, [this] { return output_.options(); });
  }
  SessionOutput output_;
};

TEST_F(SessionTest, isMadeByTheFirstJoinAndEndedByTheLastLeave) {
  const auto first = join("0");
  const auto second = join("1");
  EXPECT_EQ(first, second);
  leaveSession(first);
  EXPECT_EQ(join("2"), first) << "a member is left, so it runs";
  leaveSession(first);
  leaveSession(first);
  EXPECT_EQ(output_.count("straggler: armed: 1 of"), 1U);
  EXPECT_EQ(output_.count("NO VERDICT"), 1U) << output_.text();
}

TEST_F(SessionTest, newOneIsMadeAfterTheLastEnded) {
  const auto first = join();
  leaveSession(first);
  const auto second = join();
  EXPECT_NE(first, second);
  leaveSession(second);
  EXPECT_EQ(output_.count("straggler: armed: 1 of"), 2U);
}

TEST_F(SessionTest, fiveSessionsLeaveNoThreadAndNoDescriptor) {
  leaveSession(join());
  const auto before = processResources();
  for (int i = 0; i < 5; ++i) {
    leaveSession(join());
  }
  EXPECT_EQ(processResources(), before);
}

TEST_F(SessionTest, leaverOfAnEndedSessionDoesNotTouchTheNext) {
  const auto first = join();
  endSession();
  const auto second = join();
  leaveSession(first);
  leaveSession(nullptr);
  EXPECT_EQ(join(), second);
}

TEST_F(SessionTest, endSessionEndsItWhoeverIsStillInIt) {
  join();
  join();
  endSession();
  endSession();
  EXPECT_EQ(output_.count("straggler: armed: 1 of"), 1U);
  EXPECT_NE(join(), nullptr);
}

TEST_F(SessionTest, endIsIdempotentAndTheReportStays) {
  const auto session = join();
  EXPECT_TRUE(lastReport());
  session->end();
  session->end();
  EXPECT_TRUE(contains(session->report(), R"("world_size":1,)"));
  leaveSession(session);
  EXPECT_TRUE(contains(lastReport(), R"("world_size":1,)"));
}

TEST_F(SessionTest, operationsReachTheReportAndTheRecords) {
  const TemporaryFolder folder;
  output_.settings.directory = folder.path().string();
  const auto session = join();
  for (int i = 0; i < 20; ++i) {
    const Ticket ticket = output_.recorder->enter(entered(OpKind::kAllReduce, i, groupId("0")));
    output_.recorder->issued(ticket, at(i));
    output_.recorder->completed(ticket, hostStamp(i + 1), false);
  }
  leaveSession(session);
  EXPECT_TRUE(contains(lastReport(), R"("collectives":20,)"));
  EXPECT_TRUE(contains(lastReport(), R"("ranks_reported":1,)"));
  EXPECT_EQ(linesOf(folder / "rank-00000.jsonl").size(), 20U);
  const auto job = linesOf(folder / "job.jsonl");
  ASSERT_GE(job.size(), 6U);
  EXPECT_TRUE(job.front().starts_with(R"({"schema":1,"type":"session","ranks":[0],"window":10,)"));
  EXPECT_TRUE(job.back().starts_with(R"({"schema":1,"type":"report",)"));
}

TEST_F(SessionTest, folderThatCannotBeWrittenStopsTheFirstJoinAndNoSessionIsLeft) {
  output_.settings.directory = "/proc/no-such-folder";
  EXPECT_THROW(join(), SettingsError);
  EXPECT_THROW(join(), SettingsError);
  output_.settings.directory.clear();
  EXPECT_NE(join(), nullptr);
}

TEST_F(SessionTest, recordsThatAreLostAreToldOnce) {
  const TemporaryFolder folder;
  output_.settings.directory = (folder / "records").string();
  const auto session = join();
  std::filesystem::remove_all(folder / "records");
  output_.recorder->failed(output_.recorder->enter(entered(OpKind::kAllReduce, 1, groupId("0"))));
  leaveSession(session);
  EXPECT_EQ(output_.count("records are lost: " + (folder / "records").string()), 1U) << output_.text();
  EXPECT_EQ(output_.count("training goes on"), 1U) << "once for both of the rank's files";
}

TEST_F(SessionTest, reasonForHavingNoTransportIsTold) {
  output_.note = "the store gives no second connection; other ranks are not seen";
  join();
  EXPECT_EQ(output_.count("straggler: rank 0: the store gives no second connection"), 1U);
}

TEST_F(SessionTest, whatWasSaidIsOutWhenItHasEnded) {
  const auto log = std::make_shared<RecordingLog>();
  auto options = output_.options();
  options.log = log;
  Session session(options);
  EXPECT_EQ(log->flushes, 0);
  session.end();
  EXPECT_EQ(log->flushes, 1);
  EXPECT_TRUE(contains(log->lines.back().second, "NO VERDICT"));
}

TEST_F(SessionTest, pollerIsAskedAgainAndAgain) {
  struct CountingPoller final : Poller {
    bool poll() noexcept override { return ++polls < 1000; }
    std::atomic<int> polls{0};
  };
  const auto poller = std::make_shared<CountingPoller>();
  output_.poller = poller;
  const auto session = join();
  EXPECT_EQ(session->poller(), poller);
  EXPECT_TRUE(eventually([&] { return poller->polls > 20; }));
}

// The transport between two ranks of one process: what one sends the other's collector receives.
class TwoRanksTest : public SessionTest {
 protected:
  TwoRanksTest() {
    output_.exchange = std::make_shared<LocalExchange>();
    output_.ranks = {0, 1};
    otherOutput_.rank = 1;
    otherOutput_.ranks = output_.ranks;
    otherOutput_.exchange = output_.exchange;
    root_.emplace(output_.options());
    other_.emplace(otherOutput_.options());
  }
  SessionOutput otherOutput_;
  std::optional<Session> root_;
  std::optional<Session> other_;
};

TEST_F(TwoRanksTest, ranksMeetAtTheRoot) {
  const GroupInfo group{"0", "", "gloo", {0, 1}};
  root_->addGroup(group);
  other_->addGroup(group);
  EXPECT_TRUE(eventually([&] { return contains(root_->report(), R"("ranks_reported":2,)"); }));
  EXPECT_TRUE(eventually([&] { return contains(other_->report(), R"("ranks_reported":2,)"); }));
  EXPECT_TRUE(contains(other_->report(), "the table of all ranks is kept on the reporting rank"));
  other_->end();
  root_->end();
  EXPECT_TRUE(contains(root_->report(), R"("notes":[])")) << *root_->report();
  EXPECT_TRUE(other_->report()) << "what was published last stays";
  EXPECT_EQ(otherOutput_.text(), "") << "only the root speaks";
}

TEST_F(TwoRanksTest, mitigationOfEveryRankIsInTheReportAtTheEnd) {
  root_->setMitigation([] { return MitigationSummary{true, "carry", "group 0"}; });
  other_->setMitigation([] { return MitigationSummary{true, "carry", "group 0", 5, 4, 2, 0, 2, 3, 2, 1'500'000}; });
  other_->end();
  root_->end();
  EXPECT_EQ(output_.count("Mitigation (carry): armed: group 0\n"), 1U) << output_.text();
  EXPECT_EQ(output_.count("note: rank 1 ends with 2 gradients that were not applied"), 1U);
  EXPECT_TRUE(contains(root_->report(), R"("mitigation":[{"rank":0,"mode":"carry","armed":true,"text":"group 0",)"));
}

TEST_F(SessionTest, mitigationThatThrowsCostsOneLine) {
  const auto session = join();
  session->setMitigation([]() -> std::optional<MitigationSummary> { throw std::bad_alloc(); });
  leaveSession(session);
  EXPECT_EQ(output_.count("straggler: rank 0: what mitigation does is not reported any more: std::bad_alloc"), 1U);
  EXPECT_EQ(output_.count("NO VERDICT"), 1U) << "the report is made";
}

TEST_F(SessionTest, rankThatNeverComesDoesNotHoldUpTheEndForLong) {
  output_.exchange = std::make_shared<LocalExchange>();
  output_.ranks = {0, 1};
  const auto session = join();
  const auto begin = std::chrono::steady_clock::now();
  leaveSession(session);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(output_.count("nothing was heard of rank 1"), 1U);
}

TEST_F(SessionTest, transportThatNeverAnswersDoesNotHoldUpTheEndForLong) {
  output_.exchange = std::make_shared<BlockedExchange>();
  output_.rank = 1;
  output_.ranks = {0, 1};
  auto session = std::make_unique<Session>(output_.options());
  const auto begin = std::chrono::steady_clock::now();
  session.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  std::static_pointer_cast<BlockedExchange>(output_.exchange)->unblock();
}

}  // namespace
}  // namespace straggler
