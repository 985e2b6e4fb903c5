#include "backend/session/collector.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "backend/exchange/beat.h"
#include "backend/report/json_records.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_exchange.h"
#include "tests/fakes/operations.h"
#include "tests/fakes/ranks.h"
#include "tests/fakes/recording_reporter.h"

namespace straggler {
namespace {

class CollectorTest : public testing::Test {
 protected:
  CollectorTest() {
    job_.selfMs = [](int rank, std::int64_t) { return rank == 2 ? 33.0 : 25.0; };
  }

  void feed(const std::vector<Frame>& frames) {
    for (const auto& frame : frames) {
      exchange_->feed(frame);
    }
  }
  void hellos(int count) {
    for (int rank = 0; rank < count; ++rank) {
      exchange_->feed(job_.hello(rank));
    }
  }
  void round(double advanceMs = 50) {
    clock_.advance(ms(advanceMs));
    collector_.round(clock_.now());
  }
  // Turns until it ends; gives the milliseconds that passed.
  double finish() {
    double passed = 0;
    while (!collector_.finish(clock_.now())) {
      clock_.advance(ms(10));
      passed += 10;
    }
    return passed;
  }
  std::vector<std::string> callsBeside(const std::string& left) {
    std::vector<std::string> calls = log_->calls;
    std::erase(calls, left);
    return calls;
  }

  using Calls = std::vector<std::string>;
  SyntheticJob job_;
  FakeClock clock_{at(1e6)};
  std::shared_ptr<FakeExchange> exchange_ = std::make_shared<FakeExchange>();
  std::shared_ptr<FakeExchange> other_ = std::make_shared<FakeExchange>();
  std::shared_ptr<RecordingReporter::Log> log_ = std::make_shared<RecordingReporter::Log>();
  Collector collector_{
      SessionStart{{0, 1, 2, 3}, 10, 0}, {exchange_, other_}, std::make_unique<RecordingReporter>(log_), clock_};
};

TEST_F(CollectorTest, isArmedOnceEveryRankAndAGroupAreKnown) {
  hellos(3);
  round();
  EXPECT_EQ(callsBeside("received"), Calls{"started"});
  exchange_->feed(job_.hello(3));
  round();
  round();
  round(60'000);
  EXPECT_EQ(callsBeside("received"), (Calls{"started", "armed"}));
  EXPECT_EQ(log_->armed.front().ranksReported, 4U);
}

TEST_F(CollectorTest, isArmedAfterItsPatienceThoughARankIsMissing) {
  hellos(3);
  round();
  round(9'900);
  EXPECT_TRUE(log_->armed.empty());
  round(200);
  ASSERT_EQ(log_->armed.size(), 1U);
  EXPECT_EQ(log_->armed.front().ranksReported, 3U);
}

TEST_F(CollectorTest, allTransportsAreRead) {
  exchange_->feed(job_.hello(0));
  other_->feed(job_.hello(1));
  round();
  EXPECT_EQ(collector_.report().ranksReported, 2U);
  EXPECT_EQ(log_->frames.size(), 2U);
}

TEST_F(CollectorTest, framesThatCannotBeReadAreCountedAndPassedOver) {
  hellos(2);
  exchange_->feed(std::vector<std::uint8_t>{1, 2, 3});
  exchange_->feed(std::vector<std::uint8_t>{});
  exchange_->feed(job_.hello(2));
  round();
  const JobReport report = collector_.report();
  EXPECT_EQ(report.ranksReported, 3U);
  EXPECT_EQ(log_->frames.size(), 3U);
  EXPECT_EQ(report.notes.back(), "2 frames could not be read and were passed over");
}

TEST_F(CollectorTest, publishesOnceItIsArmedAndThenEveryFiveSeconds) {
  hellos(3);
  round();
  EXPECT_TRUE(exchange_->publications.empty());
  exchange_->feed(job_.hello(3));
  round();
  round(4'900);
  ASSERT_EQ(exchange_->publications.size(), 1U);
  EXPECT_NE(exchange_->publications.front().first.find(R"("ranks_reported":4,)"), std::string::npos);
  round(200);
  EXPECT_EQ(exchange_->publications.size(), 2U);
  EXPECT_EQ(other_->publications, exchange_->publications);
}

TEST_F(CollectorTest, tellsAndPublishesAVerdictAsSoonAsItStarts) {
  hellos(4);
  round();
  for (std::int64_t first = 0; first < 50; first += 10) {
    EXPECT_TRUE(log_->changed.empty() || first > 20) << "three windows are needed";
    for (int rank = 0; rank < 4; ++rank) {
      exchange_->feed(job_.stepWindow(rank, first));
    }
    round();
  }
  ASSERT_EQ(log_->changed.size(), 1U);
  EXPECT_EQ(log_->changed.front().ranks, std::vector<int>{2});
  EXPECT_EQ(log_->changed.front().step, 29);
  ASSERT_EQ(exchange_->publications.size(), 2U) << "when armed, and at once when the verdict changed";
  EXPECT_NE(exchange_->publications.back().first.find(R"("kind":"straggler","ranks":[2])"), std::string::npos);
}

TEST_F(CollectorTest, endsAtOnceWhenEveryRankHasToldItsEnd) {
  feed(job_.frames());
  round();
  EXPECT_EQ(finish(), 0);
  EXPECT_EQ(callsBeside("received"), (Calls{"started", "armed", "changed", "ended"}));
  EXPECT_EQ(log_->ended.front().verdict.ranks, std::vector<int>{2});
  EXPECT_EQ(exchange_->announcements, 0U);
}

TEST_F(CollectorTest, atItsEndItWaitsForNoTurnOfTheTransport) {
  exchange_->busyUntilTheEnd = true;
  feed(job_.frames());
  round();
  EXPECT_EQ(collector_.report().ranksReported, 0U);
  EXPECT_EQ(finish(), 0);
  EXPECT_EQ(log_->ended.front().ranksReported, 4U);
  EXPECT_EQ(exchange_->endings, 1U);
  EXPECT_EQ(other_->endings, 1U);
}

TEST_F(CollectorTest, waitsForARankThatIsLateWithItsEnd) {
  auto frames = job_.frames();
  const Frame last = frames.back();
  frames.pop_back();
  feed(frames);
  round();
  EXPECT_FALSE(collector_.finish(clock_.now()));
  clock_.advance(ms(30));
  EXPECT_FALSE(collector_.finish(clock_.now()));
  clock_.advance(ms(470));
  exchange_->feed(last);
  EXPECT_TRUE(collector_.finish(clock_.now()));
  EXPECT_TRUE(log_->ended.front().notes.empty());
}

TEST_F(CollectorTest, saysThatItLeavesAndEndsWithoutTheRankThatTellsNoEnd) {
  auto frames = job_.frames();
  frames.pop_back();
  feed(frames);
  round();
  EXPECT_EQ(finish(), 1500);
  EXPECT_EQ(exchange_->announcements, 1U);
  EXPECT_EQ(other_->announcements, 1U);
  ASSERT_EQ(log_->ended.size(), 1U);
  EXPECT_NE(log_->ended.front().notes.front().find("rank 3 has not told its end"), std::string::npos);
}

TEST_F(CollectorTest, rankThatAnswersTheAnnouncementEndsTheWait) {
  auto frames = job_.frames();
  const Frame last = frames.back();
  frames.pop_back();
  feed(frames);
  while (exchange_->announcements == 0) {
    ASSERT_FALSE(collector_.finish(clock_.now()));
    clock_.advance(ms(10));
  }
  exchange_->feed(last);
  EXPECT_TRUE(collector_.finish(clock_.now()));
}

TEST_F(CollectorTest, endsAtOnceWhereTheTransportIsGone) {
  auto frames = job_.frames();
  frames.pop_back();
  feed(frames);
  other_->answer = Exchange::Sent::kGone;
  EXPECT_EQ(finish(), 0);
  EXPECT_EQ(log_->ended.front().ranksReported, 4U) << "what had come before is there";
  EXPECT_NE(log_->ended.front().notes.front().find("rank 3 has not told its end"), std::string::npos);
}

TEST_F(CollectorTest, isArmedBeforeItEndsHoweverShortTheJob) {
  finish();
  EXPECT_EQ(log_->calls, (Calls{"started", "armed", "ended"}));
  EXPECT_EQ(log_->ended.front().ranksReported, 0U);
}

TEST_F(CollectorTest, recordsThatTheReportersLostAreCounted) {
  feed(job_.frames());
  log_->lost = 7;
  round();
  EXPECT_EQ(collector_.report().recordsDropped, 7U);
  EXPECT_EQ(collector_.report().notes, std::vector<std::string>{"7 records were dropped or could not be written"});
}

TEST_F(CollectorTest, reportIsTheSameAfterAReplayOfWhatWasReceived) {
  feed(job_.frames());
  round();
  finish();
  JobModel replay(job_.members(), 10);
  for (const auto& frame : log_->frames) {
    replay.apply(frame);
  }
  EXPECT_EQ(toJson(jobReport(replay)), toJson(collector_.report()));
}

// ---- Clocks ----

TEST_F(CollectorTest, ranksOfOneClockAreNotAskedForIt) {
  hellos(4);
  round();
  round(1000);
  EXPECT_EQ(exchange_->beatsShown, 0U);
}

TEST_F(CollectorTest, rankOnAnotherClockIsAskedForItUntilItIsKnown) {
  hellos(3);
  exchange_->feed({3, {RankHello{"host-b", 1, "clock-b"}}});
  round();
  ASSERT_TRUE(exchange_->beat);
  EXPECT_EQ(decodeBeat(*exchange_->beat)->asked, std::vector<int>{3});
  EXPECT_EQ(decodeBeat(*exchange_->beat)->before, clock_.now());
  exchange_->feed({3, {ClockReading{at(5000), at(5000.1), at(1), at(1.2)}}});
  round(1000);
  EXPECT_TRUE(decodeBeat(*exchange_->beat)->asked.empty());
  const auto report = collector_.report();
  ASSERT_EQ(report.clockRows.size(), 1U);
  EXPECT_NEAR(report.clockRows[0].offsetMs.value(), 4999, 0.2);
}

}  // namespace
}  // namespace straggler
