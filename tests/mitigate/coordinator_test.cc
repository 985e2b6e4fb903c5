#include "backend/mitigate/coordinator.h"

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"
#include "tests/fakes/slot_operations.h"

namespace straggler {
namespace {

using Order = Coordinator::Order;

const SlotRange kSlot9{9, {bucketOf(0)}};
const SlotRange kSlot10{10, {bucketOf(0)}};

std::vector<Order> requestsIn(const std::vector<Order>& orders) {
  std::vector<Order> requests;
  for (const Order& order : orders) {
    if (std::holds_alternative<JoinRequest>(order.message)) {
      requests.push_back(order);
    }
  }
  return requests;
}

std::vector<int> toldOf(const std::vector<Order>& orders, bool any) {
  std::vector<int> ranks;
  for (const Order& order : orders) {
    if (order.message == decltype(order.message)(Behind{any, 0})) {
      ranks.push_back(order.rank);
    }
  }
  return ranks;
}

TEST(CoordinatorTest, theExampleOfTheHeader) {
  Coordinator coordinator(4, 2);
  EXPECT_TRUE(coordinator.hear(PendingReport{0, true, kSlot9}, at(0)).empty());
  const auto closed = coordinator.hear(PendingReport{2, true, kSlot9}, at(1));
  EXPECT_EQ(requestsIn(closed), (std::vector<Order>{{1, JoinRequest{kSlot9}}, {3, JoinRequest{kSlot9}}}));
  EXPECT_EQ(toldOf(closed, true), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_TRUE(coordinator.hear(PendingReport{3, false, kSlot10}, at(2)).empty());
  EXPECT_TRUE(requestsIn(coordinator.hear(PendingReport{0, false, kSlot10}, at(3))).empty()) << "rank 2 may be in time";
  EXPECT_EQ(requestsIn(coordinator.hear(PendingReport{2, false, kSlot10}, at(4))),
            (std::vector<Order>{{1, JoinRequest{kSlot10}}}));
}

TEST(CoordinatorTest, fewerThanTheQuorumWait) {
  Coordinator coordinator(4, 3);
  coordinator.hear(PendingReport{0, true, kSlot9}, at(0));
  EXPECT_TRUE(coordinator.hear(PendingReport{1, true, kSlot9}, at(1)).empty());
}

TEST(CoordinatorTest, aReportThatIsRepeatedIsNoSecondRank) {
  Coordinator coordinator(4, 2);
  coordinator.hear(PendingReport{0, true, kSlot9}, at(0));
  EXPECT_TRUE(coordinator.hear(PendingReport{0, true, kSlot9}, at(1)).empty());
}

TEST(CoordinatorTest, aRequestIsMadeAgainWhenReportsGoOn) {
  Coordinator coordinator(2, 1);
  EXPECT_EQ(requestsIn(coordinator.hear(PendingReport{0, true, kSlot9}, at(0))).size(), 1U);
  EXPECT_TRUE(coordinator.hear(PendingReport{0, true, kSlot9}, at(1)).empty());
  EXPECT_EQ(requestsIn(coordinator.hear(PendingReport{0, true, kSlot9}, at(0) + Coordinator::kRetry)).size(), 1U);
}

TEST(CoordinatorTest, nobodyIsBehindOnceTheLastHasCaughtUp) {
  Coordinator coordinator(2, 1);
  coordinator.hear(PendingReport{0, true, kSlot9}, at(0));
  EXPECT_TRUE(coordinator.hear(CaughtUp{1, 9, 0}, at(1)).empty()) << "said before the request reached it";
  EXPECT_EQ(toldOf(coordinator.hear(CaughtUp{1, 10, 0}, at(2)), false), (std::vector<int>{0, 1}));
}

TEST(CoordinatorTest, whoReportsAtOnceThoughNobodyIsBehindIsToldSo) {
  Coordinator coordinator(4, 2);
  EXPECT_EQ(coordinator.hear(PendingReport{2, false, kSlot9}, at(0)), (std::vector<Order>{{2, Behind{false, 0}}}));
}

TEST(CoordinatorTest, nobodyIsAskedWhileARankIsMissingThatRefuses) {
  Coordinator coordinator(4, 2);
  coordinator.hear(Refusal{3, true}, at(0));
  coordinator.hear(PendingReport{0, true, kSlot9}, at(1));
  EXPECT_TRUE(coordinator.hear(PendingReport{1, true, kSlot9}, at(2)).empty()) << "rank 3 is waited for in any case";
  EXPECT_EQ(requestsIn(coordinator.hear(PendingReport{3, true, kSlot9}, at(3))),
            (std::vector<Order>{{2, JoinRequest{kSlot9}}}));
  coordinator.hear(Refusal{3, false}, at(4));
  coordinator.hear(PendingReport{0, true, kSlot10}, at(5));
  EXPECT_EQ(requestsIn(coordinator.hear(PendingReport{1, true, kSlot10}, at(6))).size(), 2U);
}

TEST(CoordinatorTest, longestOverrunIsToldWhenNobodyIsBehindAnyMore) {
  Coordinator coordinator(3, 1);
  coordinator.hear(PendingReport{0, true, kSlot9}, at(0));
  coordinator.hear(CaughtUp{1, 10, 600}, at(1));
  const auto told = coordinator.hear(CaughtUp{2, 10, 500}, at(2));
  EXPECT_EQ(told, (std::vector<Order>{{0, Behind{false, 600}}, {1, Behind{false, 600}}, {2, Behind{false, 600}}}));
}

// ---- Drop ----

std::vector<Order> withoutBehind(std::vector<Order> orders) {
  std::erase_if(orders, [](const Order& order) { return std::holds_alternative<Behind>(order.message); });
  return orders;
}

TEST(CoordinatorTest, inDropTheAbsentJoinOnceAllParticipantsKnow) {
  Coordinator coordinator(4, 2, MitigationMode::kDrop);
  coordinator.hear(PendingReport{0, true, kSlot9}, at(0));
  coordinator.hear(PendingReport{1, true, kSlot9}, at(1));
  EXPECT_TRUE(withoutBehind(coordinator.hear(Reservation{3, 9, true}, at(2))).empty());
  const auto announced = coordinator.hear(Reservation{2, 9, false}, at(3));
  EXPECT_EQ(announced, (std::vector<Order>{{0, Announcement{9, 3}}, {1, Announcement{9, 3}}, {2, Announcement{9, 3}}}));
  EXPECT_TRUE(coordinator.hear(Acknowledgement{0, 9}, at(4)).empty());
  EXPECT_TRUE(coordinator.hear(Acknowledgement{1, 9}, at(5)).empty());
  EXPECT_EQ(coordinator.hear(Acknowledgement{2, 9}, at(6)), (std::vector<Order>{{3, Go{9, 3}}}));
}

TEST(CoordinatorTest, inDropWhereNobodyIsAbsentNothingIsAnnounced) {
  Coordinator coordinator(2, 1, MitigationMode::kDrop);
  coordinator.hear(PendingReport{0, true, kSlot9}, at(0));
  EXPECT_TRUE(coordinator.hear(Reservation{1, 9, false}, at(1)).empty());
}

TEST(CoordinatorTest, inDropWhatMayHaveBeenLostIsSaidAgain) {
  Coordinator coordinator(2, 1, MitigationMode::kDrop);
  coordinator.hear(PendingReport{0, true, kSlot9}, at(0));
  coordinator.hear(Reservation{1, 9, true}, at(1));
  EXPECT_TRUE(coordinator.hear(PendingReport{0, true, kSlot9}, at(2)).empty());
  EXPECT_EQ(coordinator.hear(PendingReport{0, true, kSlot9}, at(1) + Coordinator::kRetry),
            (std::vector<Order>{{0, Announcement{9, 1}}}));
  EXPECT_EQ(coordinator.hear(Acknowledgement{0, 9}, at(30)), (std::vector<Order>{{1, Go{9, 1}}}));
  EXPECT_EQ(coordinator.hear(PendingReport{0, true, kSlot9}, at(30) + Coordinator::kRetry),
            (std::vector<Order>{{1, Go{9, 1}}}));
}

TEST(CoordinatorTest, whoWasAskedIsAskedAgainThoughItRefusesNow) {
  // Its answer may have been lost, and it has reserved the slot: only the agreement frees it.
  Coordinator coordinator(2, 1, MitigationMode::kDrop);
  coordinator.hear(PendingReport{0, true, kSlot9}, at(0));
  coordinator.hear(Refusal{1, true}, at(1));
  EXPECT_EQ(coordinator.hear(PendingReport{0, true, kSlot9}, at(0) + Coordinator::kRetry),
            (std::vector<Order>{{1, JoinRequest{kSlot9}}}));
}

TEST(CoordinatorTest, inDropAnAnswerOfOneThatWasNotAskedIsIgnored) {
  Coordinator coordinator(4, 2, MitigationMode::kDrop);
  EXPECT_TRUE(coordinator.hear(Reservation{3, 9, true}, at(0)).empty());
  EXPECT_TRUE(coordinator.hear(Acknowledgement{3, 9}, at(0)).empty());
}

TEST(CoordinatorTest, strangersAreIgnored) {
  Coordinator coordinator(2, 1);
  EXPECT_TRUE(coordinator.hear(PendingReport{2, true, kSlot9}, at(0)).empty());
  EXPECT_TRUE(coordinator.hear(PendingReport{-1, true, kSlot9}, at(0)).empty());
}

TEST(CoordinatorTest, whatIsRememberedIsBounded) {
  Coordinator coordinator(4, 2);
  coordinator.hear(PendingReport{0, true, {0, {bucketOf(0)}}}, at(0));
  for (Slot slot = 1; slot <= Coordinator::kMaxSlots; ++slot) {
    coordinator.hear(PendingReport{0, true, {slot, {bucketOf(0)}}}, at(0));
  }
  EXPECT_TRUE(coordinator.hear(PendingReport{1, true, {0, {bucketOf(0)}}}, at(0)).empty()) << "slot 0 is forgotten";
  EXPECT_FALSE(coordinator.hear(PendingReport{1, true, {Coordinator::kMaxSlots, {bucketOf(0)}}}, at(0)).empty());
}

}  // namespace
}  // namespace straggler
