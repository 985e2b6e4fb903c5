// What a rank does when the transport is busy, gone, or must not be touched any more.
#include <gtest/gtest.h>

#include "backend/exchange/beat.h"
#include "backend/session/monitor.h"
#include "tests/fakes/simulated_rank.h"

namespace straggler {
namespace {

TEST(MonitorTransport, whatCannotBeSentYetIsKeptInItsOrder) {
  SimulatedRank rank;
  rank.exchange->answer = Exchange::Sent::kLater;
  rank.steps(100);
  EXPECT_TRUE(rank.exchange->sent.empty());
  rank.exchange->answer = Exchange::Sent::kYes;
  rank.steps(10);
  EXPECT_EQ(rank.exchange->messages<RankHello>().size(), 1U);
  EXPECT_EQ(rank.exchange->messages<GroupInfo>().size(), 1U);
  const auto windows = rank.exchange->messages<StepWindow>();
  ASSERT_GE(windows.size(), 10U);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    EXPECT_EQ(windows[i].firstStep, static_cast<std::int64_t>(10 * i));
  }
  EXPECT_EQ(rank.exchange->messages<RankCounters>().back().messagesLost, 0U);
}

TEST(MonitorTransport, whatWaitsIsBoundedAndWhatIsLostIsCounted) {
  SimulatedRank rank;
  rank.exchange->answer = Exchange::Sent::kLater;
  rank.steps(10'000);  // five minutes
  rank.exchange->answer = Exchange::Sent::kYes;
  rank.finish();
  std::size_t messages = 0;
  for (const auto& frame : rank.exchange->sent) {
    messages += frame.messages.size();
  }
  EXPECT_LE(messages, Monitor::kMaxWaiting);
  EXPECT_GT(rank.exchange->messages<RankCounters>().back().messagesLost, 0U);
}

TEST(MonitorTransport, rootThatWasNotThereForLongStillLearnsWhoTheRankIs) {
  SimulatedRank rank;
  rank.exchange->answer = Exchange::Sent::kLater;
  rank.steps(10'000);
  rank.exchange->answer = Exchange::Sent::kYes;
  rank.finish();
  EXPECT_EQ(rank.exchange->messages<RankHello>().size(), 1U) << "without it nothing of the rank can be compared";
  EXPECT_EQ(rank.exchange->messages<GroupInfo>().size(), 1U);
}

TEST(MonitorTransport, storeThatIsGoneIsToldOnceAndNotTouchedAgain) {
  SimulatedRank rank;
  rank.steps(20);
  rank.exchange->answer = Exchange::Sent::kGone;
  rank.steps(20);
  const std::size_t calls = rank.exchange->sendCalls + rank.exchange->leavingCalls;
  rank.steps(500);
  EXPECT_TRUE(rank.finish());
  EXPECT_EQ(rank.exchange->sendCalls + rank.exchange->leavingCalls, calls);
  ASSERT_EQ(rank.complaints.size(), 1U);
  EXPECT_EQ(
      rank.complaints.front(),
      "the store cannot be reached any more (the peer closed the connection); this rank goes on recording, but the "
      "reporting rank hears no more of it");
}

TEST(MonitorTransport, rootThatLeavesGetsTheLastCountersAndIsNotTouchedAgain) {
  SimulatedRank rank;
  rank.steps(20);
  rank.exchange->leaving = true;
  rank.steps(20);
  const std::size_t calls = rank.exchange->sendCalls + rank.exchange->leavingCalls;
  EXPECT_TRUE(rank.exchange->messages<RankCounters>().back().final);
  rank.steps(500);
  EXPECT_TRUE(rank.finish());
  EXPECT_EQ(rank.exchange->sendCalls + rank.exchange->leavingCalls, calls);
  EXPECT_TRUE(rank.complaints.empty()) << "an orderly end is no news";
}

TEST(MonitorTransport, rootThatLeavesWhileItIsBusyIsNotWaitedFor) {
  SimulatedRank rank;
  rank.exchange->answer = Exchange::Sent::kLater;
  rank.exchange->leaving = true;
  rank.steps(20);
  const std::size_t calls = rank.exchange->sendCalls + rank.exchange->leavingCalls;
  EXPECT_TRUE(rank.finish());
  EXPECT_EQ(rank.exchange->sendCalls + rank.exchange->leavingCalls, calls);
}

TEST(MonitorTransport, reportThatTheRootPublishedIsKept) {
  SimulatedRank rank;
  rank.steps(20);
  EXPECT_GT(rank.exchange->looks, 0U);
  EXPECT_EQ(rank.monitor->published(), std::nullopt);
  rank.exchange->news = "one";
  rank.steps(20);
  rank.steps(20);
  EXPECT_EQ(rank.monitor->published(), "one") << "nothing newer came";
  rank.exchange->news = "two";
  rank.finish();
  EXPECT_EQ(rank.monitor->published(), "two");
}

TEST(MonitorTransport, afterTheRootHasLeftNoReportIsLookedFor) {
  SimulatedRank rank;
  rank.exchange->leaving = true;
  rank.exchange->news = "one";
  rank.steps(200);
  EXPECT_EQ(rank.exchange->looks, 0U);
}

TEST(MonitorTransport, finishIsCalledAgainUntilEverythingIsSent) {
  SimulatedRank rank;
  rank.steps(5);
  rank.exchange->answer = Exchange::Sent::kLater;
  EXPECT_FALSE(rank.finish());
  EXPECT_FALSE(rank.finish());
  rank.exchange->answer = Exchange::Sent::kYes;
  EXPECT_TRUE(rank.finish());
  const auto counters = rank.exchange->messages<RankCounters>();
  EXPECT_TRUE(counters.back().final);
  EXPECT_EQ(std::count_if(counters.begin(), counters.end(), [](const auto& c) { return c.final; }), 1);
}

TEST(MonitorTransport, atItsEndItWaitsForNoTurnOfTheTransport) {
  SimulatedRank rank;
  rank.exchange->busyUntilTheEnd = true;
  rank.steps(100);
  EXPECT_TRUE(rank.exchange->sent.empty());
  EXPECT_TRUE(rank.finish());
  EXPECT_EQ(rank.exchange->messages<StepWindow>().size(), 10U);
  EXPECT_TRUE(rank.exchange->messages<RankCounters>().back().final);
}

TEST(MonitorTransport, rootThatLeavesGetsTheLastCountersWithoutATurn) {
  SimulatedRank rank;
  rank.exchange->busyUntilTheEnd = true;
  rank.steps(20);
  rank.exchange->leaving = true;
  rank.steps(20);
  ASSERT_FALSE(rank.exchange->messages<RankCounters>().empty());
  EXPECT_TRUE(rank.exchange->messages<RankCounters>().back().final);
}

TEST(MonitorTransport, manyMessagesGoInSeveralFrames) {
  SimulatedRank rank;
  rank.exchange->answer = Exchange::Sent::kLater;
  rank.steps(1000);
  rank.exchange->answer = Exchange::Sent::kYes;
  rank.finish();
  EXPECT_GT(rank.exchange->sent.size(), 2U);
  for (const auto& frame : rank.exchange->sent) {
    EXPECT_LE(frame.messages.size(), 16U);
  }
}

// ---- The root's clock ----

TEST(MonitorTransport, rankThatIsAskedTellsWhatItSawOfTheRootsClock) {
  SimulatedRank rank({.rank = 3, .listens = true});
  const auto show = [&rank](unsigned number) {
    rank.exchange->beat = encodeBeat({number, at(100.0 + number), at(99.5 + number), {3}});
  };
  show(1);
  rank.idle(25);
  EXPECT_TRUE(rank.monitor->isHurried());
  show(2);
  rank.idle(25);
  EXPECT_FALSE(rank.monitor->isHurried());
  show(3);
  rank.idle(500);
  const auto told = rank.exchange->messages<ClockReading>();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0], (ClockReading{at(102), at(102.5), at(1e6 + 25), at(1e6 + 50)}));
}

TEST(MonitorTransport, rankLooksForNoBeatOnceTheRootHasLeft) {
  SimulatedRank rank({.rank = 3, .listens = true});
  rank.exchange->leaving = true;
  rank.idle(2000);
  EXPECT_LE(rank.exchange->beatLooks, 1U);
}

}  // namespace
}  // namespace straggler
