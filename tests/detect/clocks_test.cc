#include "backend/detect/clocks.h"

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"
#include "tests/fakes/two_clocks.h"

namespace straggler {
namespace {

// Rank 0 and 1 on the reference clock, rank 2 on one that is 10 s behind. All complete at `completedMs`.
std::vector<RankSample> samples(double arrival0, double arrival1, double arrival2, double completedMs) {
  const Duration behind = ms(10'000);
  return {{0, at(arrival0), at(completedMs)},
          {1, at(arrival1), at(completedMs)},
          {2, at(arrival2) - behind, at(completedMs) - behind}};
}

Clocks twoHosts() {
  Clocks clocks;
  clocks.setDomain(0, "host-a");
  clocks.setDomain(1, "host-a");
  clocks.setDomain(2, "host-b");
  return clocks;
}

TEST(Clocks, ranksOfOneClockCompareDirectly) {
  const auto arrivals = twoHosts().compare({{0, at(5), {}}, {1, at(7), {}}});
  ASSERT_TRUE(arrivals);
  EXPECT_EQ((*arrivals)[1].time - (*arrivals)[0].time, ms(2));
  EXPECT_EQ((*arrivals)[0].bound, Duration{0});
}

TEST(Clocks, ranksOfOneForeignClockCompareDirectlyToo) {
  Clocks clocks = twoHosts();
  clocks.setDomain(3, "host-b");
  const auto arrivals = clocks.compare({{2, at(5), {}}, {3, at(7), {}}});
  ASSERT_TRUE(arrivals);
  EXPECT_EQ((*arrivals)[1].time - (*arrivals)[0].time, ms(2));
}

TEST(Clocks, rankOfWhichNothingIsKnownIsNotCompared) {
  EXPECT_FALSE(twoHosts().compare({{0, at(5), {}}, {7, at(6), {}}}));
}

TEST(Clocks, ranksOfTwoClocksAreNotComparedBeforeTheTrafficRelatesThem) {
  Clocks clocks = twoHosts();
  EXPECT_FALSE(clocks.compare(samples(1, 2, 3, 4)));
  clocks.observe(samples(1, 2, 3, 4));
  EXPECT_TRUE(clocks.compare(samples(11, 12, 13, 14)));
}

TEST(Clocks, trafficRelatesTheClocksWithABound) {
  Clocks clocks = twoHosts();
  for (int i = 0; i < 20; ++i) {
    // Each of the ranks is the last once in a while: that is what narrows the interval.
    const double begin = 100 * i;
    clocks.observe(samples(begin + i % 3, begin, begin + (i + 1) % 3, begin + 2.5));
  }
  const auto arrivals = clocks.compare(samples(2000, 2001, 2004, 2005));
  ASSERT_TRUE(arrivals);
  const auto& foreign = arrivals->back();
  EXPECT_LE(foreign.bound, ms(0.75));
  EXPECT_LE(std::abs((foreign.time - at(2004)).count()), foreign.bound.count());
}

TEST(Clocks, theIntervalAtTheMomentOfTheArrivalCountsNotTheLatest) {
  Clocks clocks = twoHosts();
  clocks.observe(samples(100, 100, 100, 102));
  clocks.observe(samples(10'100, 10'100, 10'100, 10'102));
  const auto soon = clocks.compare(samples(10'100, 10'100, 10'100, 10'102));
  const auto before = clocks.compare(samples(5'100, 5'100, 5'100, 5'102));
  ASSERT_TRUE(soon && before);
  EXPECT_NEAR(toMilliseconds(soon->back().bound), 2, 0.01);
  EXPECT_NEAR(toMilliseconds(before->back().bound), 2 + 5, 0.01) << "5 s away, at 1 ms a second";
}

TEST(Clocks, referenceIsTheRootsThoughOthersAreKnownBefore) {
  Clocks clocks(0);
  clocks.setDomain(2, "host-b");
  clocks.setDomain(0, "host-a");
  clocks.observe(samples(1, 1, 2, 4));
  const auto relations = clocks.relations();
  ASSERT_EQ(relations.size(), 1U);
  EXPECT_EQ(relations[0].ranks, std::vector<int>{2});
  ASSERT_TRUE(relations[0].offset);
  EXPECT_EQ(relations[0].offset->middle() / ms(1), 9'999);  // between 9997 and 10002
}

TEST(Clocks, relationTellsOffsetAndDriftOfEachForeignClock) {
  Clocks clocks = twoHosts();
  clocks.setDomain(3, "host-b");
  clocks.setDomain(4, "host-c");
  TwoClocks truth(1, steadyDrift(10'000, 100));
  double offsetAtEnd = 0;
  while (truth.now() < 60'000) {
    const auto told = *truth.next();
    clocks.observe({{0, told.referenceBefore, told.referenceAfter}, {2, told.otherBefore, told.otherAfter}});
    offsetAtEnd = toMilliseconds(truth.offset(truth.now()));
  }
  const auto relations = clocks.relations();
  ASSERT_EQ(relations.size(), 2U);
  EXPECT_EQ(relations[0].ranks, (std::vector<int>{2, 3}));
  EXPECT_EQ(relations[0].at, truth.other(truth.now()));
  ASSERT_TRUE(relations[0].offset && relations[0].drift);
  EXPECT_NEAR(toMilliseconds(relations[0].offset->middle()), offsetAtEnd, toMilliseconds(relations[0].offset->bound()));
  EXPECT_NEAR(relations[0].drift->middlePpm(), 100, relations[0].drift->boundPpm());
  EXPECT_LT(relations[0].drift->boundPpm(), 5);
  EXPECT_EQ(relations[0].leaps, 0U);
  EXPECT_EQ(relations[1].ranks, std::vector<int>{4});
  EXPECT_FALSE(relations[1].offset || relations[1].drift) << "nothing was told of it";
}

TEST(Clocks, afterALeapNothingIsComparedUntilBothSidesAreKnownAnew) {
  Clocks clocks = twoHosts();
  const auto leapt = [](double begin) -> std::vector<RankSample> {
    return {{0, at(begin), at(begin + 2)}, {2, at(begin) - ms(5'000), at(begin + 2) - ms(5'000)}};
  };
  clocks.observe(samples(100, 100, 100, 102));
  clocks.observe(leapt(200));
  EXPECT_FALSE(clocks.compare(leapt(200)));
  EXPECT_FALSE(clocks.compare(samples(100, 100, 100, 102)));
  EXPECT_EQ(clocks.relations()[0].leaps, 1U);
  EXPECT_FALSE(clocks.relations()[0].drift);
  clocks.observe(leapt(300));
  const auto arrivals = clocks.compare(leapt(300));
  ASSERT_TRUE(arrivals);
  EXPECT_NEAR(toMilliseconds(arrivals->back().time - at(300)), 0, 2.01);
}

TEST(Clocks, looseAreThoseOfWhichLittleIsKnownTheLeastKnownFirst) {
  Clocks clocks = twoHosts();
  clocks.setDomain(3, "host-c");
  clocks.setDomain(4, "host-d");
  clocks.setDomain(5, "host-d");
  clocks.observe(samples(100, 100, 100, 110));                         // host-b to 10 ms
  clocks.observe({{0, at(100), at(100.4)}, {3, at(100), at(100.4)}});  // host-c to 0.4 ms
  EXPECT_EQ(clocks.loose(8), (std::vector<int>{4, 2}));
  EXPECT_EQ(clocks.loose(1), std::vector<int>{4});
}

TEST(Clocks, isLooseAgainOnceItsClockIsFarFromWhatBoundedIt) {
  Clocks clocks = twoHosts();
  clocks.observe(samples(100, 100, 100, 100.4));
  EXPECT_TRUE(clocks.loose(8).empty());
  clocks.hear(samples(700, 700, 700, 701));
  EXPECT_NEAR(toMilliseconds(clocks.relations()[0].offset->bound()), 0.4 + 0.6, 0.01);
  EXPECT_EQ(clocks.relations()[0].at, at(700) - ms(10'000));
  EXPECT_EQ(clocks.loose(8), std::vector<int>{2});
}

TEST(Clocks, eventsOfOneRankOverTheStoreBoundItsClock) {
  Clocks clocks = twoHosts();
  clocks.observe(2, {at(10'100), at(101), at(99), at(10'101)});
  const auto relations = clocks.relations();
  ASSERT_TRUE(relations[0].offset);
  EXPECT_EQ(relations[0].offset->lower, ms(10'100 - 101));
  clocks.observe(0, {at(1), at(2), at(1), at(2)});   // the reference itself
  clocks.observe(77, {at(1), at(2), at(1), at(2)});  // nobody
  EXPECT_EQ(clocks.relations().size(), 1U);
}

TEST(Clocks, rootThatBeginsAnewOnAnotherClockLeavesNothingOfTheOld) {
  Clocks clocks = twoHosts();
  clocks.observe(samples(100, 100, 100, 102));
  clocks.setDomain(0, "host-z");
  for (const auto& relation : clocks.relations()) {
    EXPECT_FALSE(relation.offset);
  }
}

TEST(Clocks, operationWithoutCompletionsTeachesNothing) {
  Clocks clocks = twoHosts();
  clocks.observe({{0, at(1), {}}, {2, at(1), {}}});
  EXPECT_FALSE(clocks.compare(samples(1, 2, 3, 4)));
}

TEST(Clocks, arrivalsThatMayBeLateTeachNothing) {
  Clocks clocks = twoHosts();
  clocks.observe({{0, at(1), at(3)}, {2, at(1), at(3), true}});
  clocks.observe({{0, at(1), at(3), true}, {2, at(1), at(3)}});
  EXPECT_FALSE(clocks.relations()[0].offset);
  clocks.observe({{0, at(1), at(3), true}, {1, at(1), at(3)}, {2, at(1), at(3)}});
  EXPECT_TRUE(clocks.relations()[0].offset);
}

TEST(Clocks, operationThatTheReferenceTookNoPartInTeachesNothing) {
  Clocks clocks = twoHosts();
  clocks.setDomain(3, "host-c");
  clocks.observe({{2, at(1), at(2)}, {3, at(1), at(2)}});
  EXPECT_FALSE(clocks.compare({{2, at(1), {}}, {3, at(1), {}}}));
}

TEST(Clocks, emptyDomainIsSharedWithNobody) {
  Clocks clocks;
  clocks.setDomain(0, "");
  clocks.setDomain(1, "");
  EXPECT_EQ(clocks.count(), 2U);
  EXPECT_FALSE(clocks.compare({{0, at(5), {}}, {1, at(7), {}}}));
}

TEST(Clocks, domainsAreCountedOnce) { EXPECT_EQ(twoHosts().count(), 2U); }

}  // namespace
}  // namespace straggler
