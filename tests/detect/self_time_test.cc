#include "backend/detect/self_time.h"

#include <initializer_list>

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"

namespace straggler {
namespace {

// The step [0, endMs] in which a rank made these calls.
StepTime step(std::initializer_list<Operation> operations, double endMs) {
  SelfTime selfTime;
  for (const auto& operation : operations) {
    selfTime.add(operation);
  }
  return selfTime.close(at(0), at(endMs));
}

void expectTimes(const StepTime& time, double selfMs, double waitMs) {
  EXPECT_DOUBLE_EQ(toMilliseconds(time.self), selfMs);
  EXPECT_DOUBLE_EQ(toMilliseconds(time.wait), waitMs);
}

TEST(SelfTime, workedExampleOfItsHeader) { expectTimes(step({bucket(1, 12, 24), bucket(1, 20, 24)}, 24), 20, 4); }

TEST(SelfTime, stepWithoutCallsIsAllItsOwn) { expectTimes(step({}, 30), 30, 0); }

TEST(SelfTime, synchronousCallBlocksFromItsArrivalToItsCompletion) {
  expectTimes(step({synchronous(10, 14), synchronous(20, 21)}, 30), 25, 5);
}

TEST(SelfTime, asynchronousCallBlocksDuringItsWaitOnly) { expectTimes(step({waited(10, 18, 20)}, 30), 28, 2); }

TEST(SelfTime, waitWhoseBeginningIsNotKnownCountsFromTheArrival) {
  Operation operation = waited(10, 18, 20);
  operation.waited = Stamp::unknown();
  expectTimes(step({operation}, 30), 20, 10);
}

TEST(SelfTime, callWhoseReleaseIsNotKnownBlocksNobody) {
  Operation operation = waited(10, 18, 20);
  operation.released = Stamp::unknown();
  expectTimes(step({operation}, 30), 30, 0);
}

TEST(SelfTime, gapsBetweenTheBucketsOfABackwardAreItsOwn) {
  expectTimes(step({bucket(1, 5, 30), bucket(1, 15, 30), bucket(1, 29, 30)}, 30), 29, 1);
}

TEST(SelfTime, synchronousCallWithinABackwardBlocksByItself) {
  Operation statistics = synchronous(6, 8);
  statistics.graphTask = 1;
  expectTimes(step({bucket(1, 5, 30), statistics, bucket(1, 28, 30)}, 30), 26, 4);
}

TEST(SelfTime, nestedBackwardsEachCountFromTheirOwnLastArrival) {
  // The outer backward goes on after the inner: what it computes from 12 to 28 is its own time.
  expectTimes(step({bucket(1, 5, 30), bucket(2, 10, 12), bucket(1, 28, 30)}, 30), 26, 4);
}

TEST(SelfTime, overlappingWaitsCountOnce) {
  expectTimes(step({waited(1, 10, 20, 1), waited(2, 15, 25, 2), waited(3, 16, 18, 3)}, 30), 15, 15);
}

// ---- Input ----

Fetch fetch(double beginMs, double endMs) { return {at(beginMs), at(endMs)}; }

double inputMs(const StepTime& time) { return toMilliseconds(time.input); }

TEST(SelfTime, workedExampleOfItsHeaderWithAFetch) {
  SelfTime selfTime;
  selfTime.addFetch(fetch(0, 9));
  selfTime.add(synchronous(4, 6));
  selfTime.add(synchronous(20, 24));
  const StepTime time = selfTime.close(at(0), at(24));
  expectTimes(time, 18, 6);
  EXPECT_DOUBLE_EQ(inputMs(time), 7);
}

TEST(SelfTime, fetchThatEndsInAWaitIsInputUpToTheWait) {
  SelfTime selfTime;
  selfTime.add(waited(1, 5, 12));
  selfTime.addFetch(fetch(2, 8));
  EXPECT_DOUBLE_EQ(inputMs(selfTime.close(at(0), at(30))), 3);
}

TEST(SelfTime, fetchWithinABackwardIsInputBetweenItsBucketsAndNotBehindThem) {
  SelfTime selfTime;
  selfTime.addFetch(fetch(6, 9));
  selfTime.addFetch(fetch(26, 28));
  selfTime.add(bucket(1, 5, 30));
  selfTime.add(bucket(1, 25, 30));
  EXPECT_DOUBLE_EQ(inputMs(selfTime.close(at(0), at(30))), 3);
}

TEST(SelfTime, fetchesThatNestCountOnce) {
  SelfTime selfTime;
  selfTime.addFetch(fetch(3, 5));
  selfTime.addFetch(fetch(6, 7));
  selfTime.addFetch(fetch(2, 10));
  EXPECT_DOUBLE_EQ(inputMs(selfTime.close(at(0), at(30))), 8);
}

TEST(SelfTime, fetchThatCrossesTheEndOfAStepIsSharedBetweenTheSteps) {
  SelfTime selfTime;
  selfTime.addFetch(fetch(25, 36));
  selfTime.addFetch(fetch(61, 63));
  EXPECT_DOUBLE_EQ(inputMs(selfTime.close(at(0), at(30))), 5);
  EXPECT_DOUBLE_EQ(inputMs(selfTime.close(at(30), at(60))), 6);
  EXPECT_DOUBLE_EQ(inputMs(selfTime.close(at(60), at(90))), 2);
  EXPECT_EQ(selfTime.intervals(), 0U) << "what lies behind is forgotten";
}

TEST(SelfTime, thereIsNoInputUntilAFetchWasSeenAndZeroAfterwards) {
  SelfTime selfTime;
  EXPECT_FALSE(selfTime.sawFetch());
  selfTime.addFetch(fetch(1, 2));
  selfTime.close(at(0), at(10));
  EXPECT_TRUE(selfTime.sawFetch());
  EXPECT_EQ(selfTime.close(at(10), at(20)).input, Duration{0});
}

TEST(SelfTime, memoryStaysBoundedWithFetchesAndTheirSumStaysRight) {
  SelfTime selfTime;
  const int fetches = 50'000;
  for (int i = 0; i < fetches; ++i) {
    selfTime.addFetch(fetch(10 * i, 10 * i + 3));
    selfTime.add(synchronous(10 * i + 2, 10 * i + 6));
    ASSERT_LE(selfTime.intervals(), SelfTime::kMaxIntervals);
  }
  const StepTime time = selfTime.close(at(0), at(10 * fetches));
  expectTimes(time, 6 * fetches, 4 * fetches);
  const auto packed = 2.0 * fetches / SelfTime::kMaxIntervals;
  EXPECT_NEAR(inputMs(time), 2 * fetches, packed) << "1 ms of the last fetch whenever they are packed, at most";
}

// ---- Bounds ----

TEST(SelfTime, callsOfOtherThreadsDoNotCount) {
  Operation checkpoint = synchronous(5, 25);
  checkpoint.trainingThread = false;
  expectTimes(step({checkpoint, synchronous(28, 29)}, 30), 29, 1);
}

TEST(SelfTime, waitThatCrossesTheEndOfAStepIsSharedBetweenTheSteps) {
  SelfTime selfTime;
  selfTime.add(waited(10, 25, 36));
  expectTimes(selfTime.close(at(0), at(30)), 25, 5);
  expectTimes(selfTime.close(at(30), at(60)), 24, 6);
  expectTimes(selfTime.close(at(60), at(90)), 30, 0);
}

TEST(SelfTime, waitThatBeganBeforeTheStepCountsFromTheStepsBeginning) {
  SelfTime selfTime;
  selfTime.add(synchronous(0, 12));
  expectTimes(selfTime.close(at(10), at(20)), 8, 2);
}

TEST(SelfTime, victimIsNotBlamedWhicheverGroupItWaitsIn) {
  // Ranks 0 and 1 share group 1, ranks 1 and 2 share group 2. Rank 0 is late by 20 ms; rank 1 waits for it in group 1 and
  // comes late to group 2, where rank 2 waits.
  const StepTime culprit = step({synchronous(30, 31, 4096, 1)}, 33);
  const StepTime victim = step({synchronous(10, 31, 4096, 1), synchronous(31.5, 32, 4096, 2)}, 33);
  const StepTime victimOfVictim = step({synchronous(11, 32, 4096, 2)}, 33);
  expectTimes(culprit, 32, 1);
  expectTimes(victim, 11.5, 21.5);
  expectTimes(victimOfVictim, 12, 21);
}

TEST(SelfTime, everythingIsEitherSelfOrWait) {
  SelfTime selfTime;
  double begin = 0;
  for (int i = 0; i < 200; ++i) {
    const double end = begin + 10 + i % 7;
    selfTime.add(waited(begin, begin + i % 5, begin + i % 13));
    selfTime.add(bucket(i, begin + 3, end));
    const StepTime time = selfTime.close(at(begin), at(end));
    EXPECT_EQ(time.self + time.wait, at(end) - at(begin));
    EXPECT_GE(time.self, Duration{0});
    begin = end;
  }
  EXPECT_LE(selfTime.intervals(), 2U) << "what lies behind is forgotten";
}

TEST(SelfTime, memoryStaysBoundedWhereNoStepEndsAndTheSumStaysRight) {
  SelfTime selfTime;
  const int calls = 100'000;
  for (int i = 0; i < calls; ++i) {
    selfTime.add(i % 2 == 0 ? synchronous(10 * i, 10 * i + 4) : bucket(i, 10 * i, 10 * i + 4));
    ASSERT_LE(selfTime.intervals(), SelfTime::kMaxIntervals);
  }
  expectTimes(selfTime.close(at(0), at(10 * calls)), 6 * calls, 4 * calls);
}

}  // namespace
}  // namespace straggler
