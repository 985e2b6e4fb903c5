#include "backend/detect/clocks.h"

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"

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
  const auto arrivals = clocks.compare(samples(5000, 5001, 5004, 5005));
  ASSERT_TRUE(arrivals);
  const auto& foreign = arrivals->back();
  EXPECT_LE(foreign.bound, ms(2.5));
  EXPECT_LE(std::abs((foreign.time - at(5004)).count()), foreign.bound.count());
}

TEST(Clocks, operationWithoutCompletionsTeachesNothing) {
  Clocks clocks = twoHosts();
  clocks.observe({{0, at(1), {}}, {2, at(1), {}}});
  EXPECT_FALSE(clocks.compare(samples(1, 2, 3, 4)));
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
