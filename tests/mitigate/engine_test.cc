// One rank's engine, order by order. All interleavings: engine_schedule_test.cc.
#include "backend/mitigate/engine.h"

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"
#include "tests/fakes/slot_operations.h"

namespace straggler {
namespace {

using Arrival = Engine::Arrival;
using Issue = Engine::Issue;
using Take = Engine::Take;
using Fill = Engine::Fill;

constexpr Duration kGrace = std::chrono::milliseconds(5);

class EngineTest : public testing::Test {
 protected:
  // The main thread arrives, a millisecond later each time, and everything completes.
  Arrival arrive(const SlotOperation& operation, double laterMs = 1) {
    now += ms(laterMs);
    return engine.arrive(operation, now);
  }
  void request(Slot last, std::vector<SlotOperation> operations) {
    engine.heard(JoinRequest{{last, std::move(operations)}});
  }
  void makeEngine(Engine::Options options) {
    options.grace = kGrace;
    engine = Engine(options);
  }

  // Steps of 30 ms whose slot completes after `waitMs`.
  void healthySteps(int count, double waitMs) {
    for (int step = 0; step < count; ++step) {
      const Arrival arrival = arrive(bucketOf(0), 30 - waitMs);
      now += ms(waitMs);
      engine.completed(std::get<Issue>(arrival).slot, now);
    }
  }

  Instant now = at(1000);
  Engine engine{{.grace = kGrace}};
};

TEST_F(EngineTest, whoIsInTimeIssuesAtOnce) {
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Issue{0, false}));
  EXPECT_EQ(arrive(exactOf()), Arrival(Issue{1, false}));
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
  EXPECT_FALSE(engine.isBehind());
}

TEST_F(EngineTest, theExampleOfTheHeader) {
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  EXPECT_EQ(engine.nextFill(now), (Fill{1, bucketOf(0), false}));
  request(2, {bucketOf(0)});
  EXPECT_EQ(engine.nextFill(now), (Fill{2, bucketOf(0), false}));
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Take{1, 0, true}));
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Take{2, 0, true}));
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Issue{3, true}));
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Issue{4, false}));
  EXPECT_EQ(engine.ledger().total(), (BucketLedger{5, 3, 2, 0, 0, 2 + 1, 2}));
}

TEST_F(EngineTest, whatIsOwedGoesWithTheProxysContributionToo) {
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  engine.nextFill(now);
  arrive(bucketOf(0));
  request(2, {bucketOf(0)});
  EXPECT_EQ(engine.nextFill(now), (Fill{2, bucketOf(0), true}));
}

TEST_F(EngineTest, residualsOfBucketsDoNotMix) {
  arrive(bucketOf(0));
  arrive(bucketOf(1));
  request(2, {bucketOf(0)});
  engine.nextFill(now);
  arrive(bucketOf(0));
  EXPECT_EQ(arrive(bucketOf(1)), Arrival(Issue{3, false}));
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Issue{4, true}));
}

TEST_F(EngineTest, anotherCallThanTheOneFilledIsAnError) {
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  engine.nextFill(now);
  const Arrival arrival = arrive(bucketOf(0, 65));
  ASSERT_TRUE(std::holds_alternative<Engine::Fail>(arrival));
  EXPECT_NE(std::get<Engine::Fail>(arrival).reason.find("slot 1"), std::string::npos);
}

TEST_F(EngineTest, aResultIsTakenUnderTheNameThatItWasFilledUnder) {
  // The main thread has not yet seen that the storage is a bucket: it comes back for the fourth time later than elsewhere.
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  engine.nextFill(now);
  EXPECT_EQ(arrive(exactOf(64)), Arrival(Take{1, 0, true}));
}

// ---- Requests ----

TEST_F(EngineTest, aRequestForALaterSlotIsRememberedUntilItsTurn) {
  arrive(bucketOf(0));
  arrive(bucketOf(1));
  request(3, {bucketOf(1)});
  EXPECT_EQ(engine.nextFill(now), std::nullopt) << "slot 2 comes first, and nobody has said what it is";
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Issue{2, false}));
  EXPECT_EQ(engine.nextFill(now), (Fill{3, bucketOf(1), false}));
}

TEST_F(EngineTest, slotsBeforeTheOneWaitedInAreFilledTooWhereTheyAreDescribed) {
  arrive(broadcastFrom(1));
  arrive(bucketOf(0));
  request(3, {bucketOf(0), broadcastFrom(1), bucketOf(0)});
  EXPECT_EQ(engine.nextFill(now), (Fill{2, broadcastFrom(1), false}));
  EXPECT_EQ(engine.nextFill(now), (Fill{3, bucketOf(0), false}));
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
  EXPECT_EQ(arrive(broadcastFrom(1)), Arrival(Take{2, 0, false}));
}

TEST_F(EngineTest, anExactOperationIsWaitedFor) {
  arrive(bucketOf(0));
  arrive(exactOf());
  request(3, {bucketOf(0), exactOf()});
  EXPECT_EQ(engine.nextFill(now), (Fill{2, bucketOf(0), false}));
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
}

TEST_F(EngineTest, aBroadcastsRootIsWaitedFor) {
  makeEngine({.rank = 1});
  arrive(broadcastFrom(1));
  request(1, {broadcastFrom(1)});
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
}

TEST_F(EngineTest, whatTheRankHasNeverDoneItselfIsNotFilled) {
  request(0, {bucketOf(0)});
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
  arrive(bucketOf(1));
  request(1, {broadcastFrom(3)});
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
}

TEST_F(EngineTest, requestsThatCameTooLateAreForgotten) {
  makeEngine({.rank = 1});
  for (Slot slot = 0; slot < Engine::kMaxRequested + 1; ++slot) {
    request(slot, {broadcastFrom(1)});
    arrive(broadcastFrom(1));
  }
  arrive(bucketOf(0));
  request(Engine::kMaxRequested + 2, {bucketOf(0)});
  EXPECT_TRUE(engine.nextFill(now).has_value());
}

TEST_F(EngineTest, aRequestOfNothingIsIgnored) {
  arrive(bucketOf(0));
  request(1, {});
  request(0, {bucketOf(0), bucketOf(0), bucketOf(0)});  // would begin before the first slot
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
}

// ---- Bounds ----

TEST_F(EngineTest, noMoreThanTheStalenessIsFilledInARow) {
  makeEngine({.staleness = 2});
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  request(2, {bucketOf(0)});
  request(3, {bucketOf(0)});
  EXPECT_TRUE(engine.nextFill(now).has_value());
  EXPECT_TRUE(engine.nextFill(now).has_value());
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
  arrive(bucketOf(0));
  EXPECT_EQ(engine.nextFill(now), (Fill{3, bucketOf(0), true})) << "peers still wait in it";
}

TEST_F(EngineTest, logThatWouldTakeTooMuchMemoryEndsTheLead) {
  makeEngine({.maxBytes = 256});
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  request(2, {bucketOf(0)});
  EXPECT_TRUE(engine.nextFill(now).has_value());
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
}

TEST_F(EngineTest, backlogThatWouldTakeTooLongEndsTheLead) {
  makeEngine({.maxBacklog = std::chrono::milliseconds(250)});
  for (int step = 0; step < 20; ++step) {
    arrive(bucketOf(0), 100);
  }
  request(20, {bucketOf(0)});
  request(21, {bucketOf(0)});
  request(22, {bucketOf(0)});
  EXPECT_TRUE(engine.nextFill(now).has_value());
  EXPECT_TRUE(engine.nextFill(now).has_value());
  EXPECT_EQ(engine.nextFill(now), std::nullopt) << "three steps of 100 ms are more than 250 ms";
}

TEST_F(EngineTest, afterStandingDownNothingIsFilledAndWhatIsOwedIsStillCarried) {
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  engine.nextFill(now);
  engine.standDown();
  request(2, {bucketOf(0)});
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Take{1, 0, true}));
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Issue{2, true}));
}

// ---- What it tells ----

TEST_F(EngineTest, aHealthySlotTellsNothing) {
  arrive(bucketOf(0));
  EXPECT_EQ(engine.tell(now + ms(4.9)).pending, std::nullopt);
  engine.completed(0, now);
  EXPECT_EQ(engine.tell(now + ms(100)).pending, std::nullopt);
}

TEST_F(EngineTest, theOldestThatWaitsBeyondTheGraceIsToldWithWhatWasBeforeIt) {
  arrive(broadcastFrom(1));
  arrive(bucketOf(0));
  const Instant second = now;
  engine.completed(0, now);
  arrive(bucketOf(1));
  const auto report = engine.tell(second + kGrace).pending;
  EXPECT_EQ(report, (PendingReport{0, true, {1, {broadcastFrom(1), bucketOf(0)}}}));
}

TEST_F(EngineTest, aReportIsRepeatedWhileTheSlotWaits) {
  arrive(bucketOf(0));
  EXPECT_TRUE(engine.tell(now + kGrace).pending);
  EXPECT_FALSE(engine.tell(now + kGrace + ms(1)).pending);
  EXPECT_TRUE(engine.tell(now + kGrace + Engine::kRepeat).pending);
}

TEST_F(EngineTest, whileARankIsBehindASlotIsToldAtOnceAndAgainBeyondTheGrace) {
  engine.heard(Behind{true, 0});
  arrive(bucketOf(0));
  EXPECT_EQ(engine.tell(now).pending, (PendingReport{0, false, {0, {bucketOf(0)}}}));
  EXPECT_EQ(engine.tell(now + ms(1)).pending, std::nullopt);
  EXPECT_EQ(engine.tell(now + kGrace).pending, (PendingReport{0, true, {0, {bucketOf(0)}}}));
}

TEST_F(EngineTest, whoHasReadItsLogSaysSoOnce) {
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  engine.nextFill(now);
  EXPECT_EQ(engine.tell(now).caughtUp, std::nullopt);
  arrive(bucketOf(0));
  EXPECT_EQ(engine.tell(now).caughtUp, (CaughtUp{0, 2, 1000}));
  EXPECT_EQ(engine.tell(now).caughtUp, std::nullopt);
}

TEST_F(EngineTest, whoIsAskedForASlotThatItHasIssuedSaysSo) {
  arrive(bucketOf(0));
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  EXPECT_EQ(engine.tell(now).caughtUp, (CaughtUp{0, 2, 0}));
}

// ---- Drop ----

TEST_F(EngineTest, inDropASlotIsReservedAnsweredForAndFilledOnTheGo) {
  makeEngine({.mode = MitigationMode::kDrop});
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
  EXPECT_EQ(engine.tell(now).reservations, (std::vector<Reservation>{{0, 1, true}}));
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Take{1, 0, false}));
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Engine::Wait{})) << "slot 2 comes after slot 1, which nobody has issued";
  engine.heard(Go{1, 3});
  EXPECT_EQ(engine.nextFill(now), (Fill{1, bucketOf(0), false, 3}));
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Issue{2, false})) << "what was dropped is never carried";
  EXPECT_EQ(engine.ledger().total(), (BucketLedger{3, 2, 0, 1, 0, 0, 0}));
}

TEST_F(EngineTest, inDropWhoHasIssuedTheSlotSaysThatItTakesPart) {
  makeEngine({.mode = MitigationMode::kDrop});
  arrive(bucketOf(0));
  request(0, {bucketOf(0)});
  EXPECT_EQ(engine.tell(now).reservations, (std::vector<Reservation>{{0, 0, false}}));
}

TEST_F(EngineTest, aRequestThatIsRepeatedIsAnsweredAgain) {
  makeEngine({.mode = MitigationMode::kDrop});
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  engine.nextFill(now);
  engine.tell(now);
  request(1, {bucketOf(0)});
  EXPECT_EQ(engine.tell(now).reservations, (std::vector<Reservation>{{0, 1, true}}));
}

TEST_F(EngineTest, aGoForAnotherSlotChangesNothing) {
  makeEngine({.mode = MitigationMode::kDrop});
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  engine.nextFill(now);
  engine.heard(Go{2, 3});
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
}

TEST_F(EngineTest, aParticipantLearnsHowManyTheyAreAndSaysSo) {
  makeEngine({.mode = MitigationMode::kDrop});
  arrive(bucketOf(0));
  engine.heard(Announcement{0, 3});
  EXPECT_EQ(engine.tell(now).acknowledgements, (std::vector<Acknowledgement>{{0, 0}}));
  EXPECT_EQ(engine.participantsOf(0), 3U);
  EXPECT_EQ(engine.participantsOf(0), 0U);
}

TEST_F(EngineTest, participantsAreKnownInWhateverOrderSlotsAreComplete) {
  makeEngine({.mode = MitigationMode::kDrop});
  arrive(bucketOf(0));
  arrive(bucketOf(1));
  engine.heard(Announcement{0, 3});
  engine.heard(Announcement{1, 2});
  EXPECT_EQ(engine.participantsOf(1), 2U);
  EXPECT_EQ(engine.participantsOf(0), 3U);
}

TEST_F(EngineTest, anAnnouncementOfASlotThatDoesNotWaitIsIgnored) {
  makeEngine({.mode = MitigationMode::kDrop});
  arrive(bucketOf(0));
  engine.completed(0, now);
  engine.heard(Announcement{0, 3});
  engine.heard(Announcement{7, 3});
  EXPECT_TRUE(engine.tell(now).acknowledgements.empty());
  EXPECT_EQ(engine.participantsOf(0), 0U);
}

TEST_F(EngineTest, whoHasStoodDownGoesOnWithWhatItHasBegun) {
  arrive(bucketOf(0));
  EXPECT_TRUE(engine.tell(now + kGrace).pending);
  engine.standDown();
  EXPECT_TRUE(engine.tell(now + kGrace + Engine::kRepeat).pending);
}

// ---- What it learns ----

TEST_F(EngineTest, whatOthersWereSparedIsCountedByWhoWasLate) {
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  engine.nextFill(now);
  request(2, {bucketOf(0)});
  engine.nextFill(now + ms(30));
  arrive(bucketOf(0), 600);
  arrive(bucketOf(0));
  EXPECT_EQ(engine.saved(), ms(600)) << "the second was late by the same stall";
  EXPECT_EQ(engine.tell(now).caughtUp, (CaughtUp{0, 3, 600'000}));
}

TEST_F(EngineTest, theGraceIsLearnedFromHealthySlotsAndTheStepWithoutItsWaits) {
  engine = Engine{Engine::Options{}};
  healthySteps(100, 4);
  arrive(bucketOf(0), 26);
  EXPECT_EQ(engine.tell(now + ms(25.9)).pending, std::nullopt);
  EXPECT_TRUE(engine.tell(now + ms(26.1)).pending) << "30 ms less the 4 that it waits";
}

TEST_F(EngineTest, aWaitThatWasCutShortCountsAsItWouldHaveBeen) {
  engine = Engine{Engine::Options{}};
  healthySteps(100, 2);
  // Another rank is late by 600 ms; its slot is filled after 29.
  arrive(bucketOf(0), 28);
  now += ms(29);
  EXPECT_TRUE(engine.tell(now).pending);
  engine.heard(Behind{true, 0});
  engine.completed(100, now);
  engine.heard(Behind{false, 571'000});
  for (Slot slot = 101; slot < 105; ++slot) {
    arrive(bucketOf(0), 28);
    engine.completed(slot, now + ms(2));
  }
  arrive(bucketOf(0), 28);
  EXPECT_EQ(engine.tell(now + ms(2.9)).pending, std::nullopt);
  EXPECT_TRUE(engine.tell(now + ms(3.1)).pending) << "one and a half times the 2 ms: 29 alone would not be worth it";
}

TEST_F(EngineTest, aSlotThatStaysIncompleteIsToldMoreAndMoreRarely) {
  arrive(bucketOf(0));
  int told = 0;
  for (int i = 0; i < 5000; ++i) {
    told += engine.tell(now + kGrace + ms(i)).pending ? 1 : 0;
  }
  EXPECT_LE(told, 14) << "5 s: 20, 40 ... 640, 640 ...";
  EXPECT_GE(told, 10);
}

TEST_F(EngineTest, nobodyIsAskedAheadOfAnExactOperationInEachStep) {
  for (std::size_t step = 0; step < StepHistory::kMinimum; ++step) {
    arrive(bucketOf(0));
    arrive(exactOf());
  }
  engine.completed(2 * StepHistory::kMinimum - 1, now);
  arrive(bucketOf(0));
  EXPECT_EQ(engine.exactInEveryStep(), "another operation");
  EXPECT_FALSE(engine.tell(now + ms(1000)).pending);
}

TEST_F(EngineTest, aRankThatStaysAtTheBoundRefusesAndSaysSo) {
  makeEngine({.staleness = 2});
  arrive(bucketOf(0));
  Slot next = 1;
  for (std::size_t step = 0; step < StepHistory::kSteps; ++step) {
    for (; engine.unread() < 2 && engine.leftAlone().empty(); ++next) {
      request(next, {bucketOf(0)});
      engine.nextFill(now);
    }
    arrive(bucketOf(0));
  }
  EXPECT_EQ(engine.tell(now).refusal, (Refusal{0, true}));
  EXPECT_EQ(engine.tell(now).refusal, std::nullopt);
  request(next, {bucketOf(0)});
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
}

TEST_F(EngineTest, theRootOfABroadcastInEveryStepIsLeftAloneAndSaysSo) {
  makeEngine({.rank = 1});
  for (std::size_t step = 0; step < StepHistory::kMinimum; ++step) {
    arrive(bucketOf(0));
    engine.arrive(broadcastFrom(1), now, "a broadcast of 32 elements");
  }
  arrive(bucketOf(0));
  EXPECT_NE(engine.leftAlone().find("the root of a broadcast of 32 elements in every step"), std::string::npos);
  EXPECT_EQ(engine.tell(now).refusal, (Refusal{1, true}));
}

TEST_F(EngineTest, anOperationOfAnotherGroupInEveryStepIsExactToo) {
  for (std::size_t step = 0; step < StepHistory::kMinimum; ++step) {
    arrive(bucketOf(0));
    engine.exactElsewhere("allreduce in group '7'");
  }
  arrive(bucketOf(0));
  EXPECT_EQ(engine.exactInEveryStep(), "allreduce in group '7'");
}

// ---- Stalls that last ----

TEST_F(EngineTest, aStallIsTakenToGrowFourfoldInEachStepOfTheLead) {
  makeEngine({.maxBacklog = std::chrono::milliseconds(1500)});
  for (int step = 0; step < 20; ++step) {
    arrive(bucketOf(0), 30);
  }
  Slot next = 20;
  const auto filledAt = [&](double stallMs) {
    request(next, {bucketOf(0)});
    next += engine.nextFill(now + ms(stallMs)) ? 1 : 0;
    return engine.unread();
  };
  EXPECT_EQ(filledAt(60), 1U);   // 1 * 240 ms
  EXPECT_EQ(filledAt(120), 2U);  // 2 * 480 ms
  EXPECT_EQ(filledAt(130), 2U) << "3 * 520 ms are more than 1500 ms";
}

// ---- Failing ----

TEST_F(EngineTest, afterAnErrorEveryCallIsOne) {
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  engine.nextFill(now);
  EXPECT_TRUE(std::holds_alternative<Engine::Fail>(arrive(exactOf())));
  EXPECT_TRUE(std::holds_alternative<Engine::Fail>(arrive(bucketOf(0))));
  EXPECT_FALSE(engine.isStanding());
}

// ---- Arming ----

TEST_F(EngineTest, untilItIsKnownWhatMayBeFilledNothingIsToldOrFilled) {
  engine.arm(false);
  arrive(bucketOf(0));
  EXPECT_EQ(engine.tell(now + kGrace).pending, std::nullopt);
  request(1, {bucketOf(0)});
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
  engine.arm(true);
  EXPECT_TRUE(engine.tell(now + kGrace).pending);
  EXPECT_TRUE(engine.nextFill(now));
}

TEST_F(EngineTest, whatWasWaitedForIsCounted) {
  engine.arm(false);
  arrive(bucketOf(0));
  engine.completed(0, now + kGrace + ms(1));
  arrive(bucketOf(0));
  engine.completed(1, now + kGrace - ms(1));
  EXPECT_EQ(engine.waitedFor(), 1U);
}

// ---- Flush ----

TEST_F(EngineTest, theSlotsOfAFlushAreLeftToTheirRanks) {
  arrive(bucketOf(0));
  arrive(bucketOf(1));
  engine.completed(1, now);
  engine.flush();
  for (Slot slot = 2; slot < 5; ++slot) {
    arrive(slot == 3 ? exactOf() : bucketOf(slot == 2 ? 0 : 1));
    EXPECT_EQ(engine.tell(now + kGrace).pending, std::nullopt) << slot;
    engine.completed(slot, now);
  }
  arrive(bucketOf(0));
  EXPECT_TRUE(engine.tell(now + kGrace).pending);
}

TEST_F(EngineTest, aBucketThatIsReducedNoMoreDoesNotHoldAFlushUp) {
  arrive(bucketOf(0));
  arrive(bucketOf(1));
  engine.flush();
  arrive(bucketOf(0));
  arrive(bucketOf(0));
  engine.completed(2, now);
  EXPECT_TRUE(engine.tell(now + kGrace).pending);
}

// ---- A run that is repeated ----

TEST_F(EngineTest, aRecordedFillIsMadeWhenTheMainThreadIsAsFarAsItWas) {
  auto script = std::make_shared<ParticipationScript>();
  script->fills = {{2, 1, bucketOf(0)}};
  script->fills.push_front({1, 1, bucketOf(0)});
  script->fills.push_back({3, 2, bucketOf(0)});
  makeEngine({.script = script});
  EXPECT_EQ(engine.nextFill(now), std::nullopt);
  arrive(bucketOf(0));
  EXPECT_EQ(engine.nextFill(now), (Fill{1, bucketOf(0), false}));
  EXPECT_EQ(engine.nextFill(now), (Fill{2, bucketOf(0), false}));
  EXPECT_EQ(engine.nextFill(now), std::nullopt) << "the third came after the gradient of slot 1";
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Take{1, 0, true}));
  EXPECT_EQ(engine.nextFill(now), (Fill{3, bucketOf(0), true}));
  EXPECT_EQ(engine.tell(now + kGrace).pending, std::nullopt);
}

TEST_F(EngineTest, aRunThatCannotBeRepeatedIsAnError) {
  auto script = std::make_shared<ParticipationScript>();
  script->fills = {{1, 1, bucketOf(7)}};
  makeEngine({.script = script});
  arrive(bucketOf(0));
  EXPECT_EQ(engine.nextFill(now), std::nullopt) << "nobody knows bucket 7";
  const Arrival arrival = arrive(bucketOf(0));
  ASSERT_TRUE(std::holds_alternative<Engine::Fail>(arrival));
  EXPECT_NE(std::get<Engine::Fail>(arrival).reason.find("recorded run"), std::string::npos);
}

TEST_F(EngineTest, whatWasFilledIsGivenOnceWithHowFarTheMainThreadWas) {
  arrive(bucketOf(0));
  request(1, {bucketOf(0)});
  engine.nextFill(now);
  request(2, {bucketOf(0)});
  engine.nextFill(now);
  EXPECT_EQ(engine.takeParticipations(), (std::vector<Participation>{{1, 1, bucketOf(0)}, {2, 1, bucketOf(0)}}));
  EXPECT_TRUE(engine.takeParticipations().empty());
}

// ---- Of an earlier run ----

TEST_F(EngineTest, whatAnEarlierRunOwedGoesWithTheNextContribution) {
  engine.restore(0);
  EXPECT_EQ(engine.ledger().total().pending, 1U);
  EXPECT_EQ(arrive(bucketOf(0)), Arrival(Issue{0, true}));
  EXPECT_EQ(engine.ledger().total(), (BucketLedger{2, 1, 1, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace straggler
