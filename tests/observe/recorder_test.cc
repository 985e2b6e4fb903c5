// Numbering, counting and handing over. How a record is filled in by kind of call: recorder_settling_test.cc.
#include "backend/observe/recorder.h"

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"

namespace straggler {
namespace {

std::vector<Operation> drained(Recorder& recorder, std::size_t limit = 100'000) {
  std::vector<Operation> operations;
  recorder.drain(operations, limit);
  return operations;
}

// A synchronous call that is done at once.
Ticket call(Recorder& recorder, GroupId group = 1, OpKind kind = OpKind::kAllReduce) {
  const Ticket ticket = recorder.enter(entered(kind, 1, group));
  recorder.issued(ticket, at(2));
  recorder.completed(ticket, hostStamp(2), false);
  return ticket;
}

static_assert(Recorder::kDefaultCapacity * sizeof(Operation) + Recorder::kFetchCapacity * sizeof(Fetch) <=
                  std::size_t{8} << 20,
              "8 MB a rank is promised to users");
static_assert(Recorder::kDefaultCapacity >= 32768, "some seconds of the busiest job must fit");

TEST(Recorder, sequenceNumbersCountByGroupInProgramOrder) {
  Recorder recorder;
  recorder.addGroup(1);
  recorder.addGroup(2);
  for (const GroupId group : {1U, 2U, 1U, 1U, 2U}) {
    call(recorder, group);
  }
  std::vector<std::pair<GroupId, std::uint64_t>> keys;
  for (const auto& operation : drained(recorder)) {
    keys.emplace_back(operation.key.group, operation.key.sequence);
  }
  EXPECT_EQ(keys, (std::vector<std::pair<GroupId, std::uint64_t>>{{1, 0}, {2, 0}, {1, 1}, {1, 2}, {2, 1}}));
}

TEST(Recorder, pointToPointCallsTakeNoNumber) {
  Recorder recorder;
  recorder.addGroup(1);
  call(recorder);
  call(recorder, 1, OpKind::kSend);
  call(recorder);
  const auto operations = drained(recorder);
  ASSERT_EQ(operations.size(), 3U);
  EXPECT_EQ(operations[2].key.sequence, 1U);
  EXPECT_EQ(recorder.collectives(), 2U);
}

TEST(Recorder, addingAGroupAgainDoesNotNumberItAnew) {
  Recorder recorder;
  recorder.addGroup(1);
  call(recorder);
  recorder.addGroup(1);
  call(recorder);
  EXPECT_EQ(drained(recorder).back().key.sequence, 1U);
}

TEST(Recorder, fetchesAreHandedOverOnceAndInTheirOrder) {
  Recorder recorder;
  recorder.fetched({at(1), at(2)});
  recorder.fetched({at(3), at(5)});
  std::vector<Fetch> fetches;
  recorder.drainFetches(fetches);
  recorder.drainFetches(fetches);
  EXPECT_EQ(fetches, (std::vector<Fetch>{{at(1), at(2)}, {at(3), at(5)}}));
}

TEST(Recorder, fetchesThatNobodyTakesOutCostNoMoreThanTheirRing) {
  Recorder recorder(4);
  recorder.addGroup(1);
  const int fetches = 3 * static_cast<int>(Recorder::kFetchCapacity);
  for (int i = 0; i < fetches; ++i) {
    recorder.fetched({at(i), at(i + 0.5)});
  }
  std::vector<Fetch> taken;
  recorder.drainFetches(taken);
  ASSERT_EQ(taken.size(), Recorder::kFetchCapacity);
  EXPECT_EQ(taken.front().begin, at(0));
  call(recorder);
  EXPECT_EQ(recorder.dropped(), 0U) << "no operation is lost to them, and none is said to be";
  EXPECT_EQ(drained(recorder).size(), 1U);
}

TEST(Recorder, fullRingCountsDropsAndGoesOnNumbering) {
  Recorder recorder(4);
  recorder.addGroup(1);
  for (int i = 0; i < 4; ++i) {
    recorder.enter(entered(OpKind::kAllReduce, i));
  }
  EXPECT_EQ(recorder.enter(entered(OpKind::kAllReduce, 4)), kNoTicket);
  EXPECT_EQ(recorder.enter(entered(OpKind::kAllReduce, 5)), kNoTicket);
  EXPECT_EQ(recorder.dropped(), 2U);
  EXPECT_EQ(recorder.collectives(), 6U);

  std::vector<Operation> operations;
  recorder.drainAll(operations);
  call(recorder);
  recorder.drainAll(operations);
  ASSERT_EQ(operations.size(), 5U);
  EXPECT_EQ(operations[3].key.sequence, 3U);
  EXPECT_EQ(operations[4].key.sequence, 6U) << "4 and 5 are the operations that were dropped";
}

TEST(Recorder, groupThatWasNotAddedGetsNoTicket) {
  Recorder recorder;
  EXPECT_EQ(recorder.enter(entered(OpKind::kAllReduce, 1, 9)), kNoTicket);
  EXPECT_EQ(recorder.collectives(), 0U);
}

TEST(Recorder, everyCallAcceptsAndIgnoresNoTicket) {
  Recorder recorder;
  recorder.addGroup(1);
  recorder.arrived(kNoTicket, hostStamp(1));
  recorder.issued(kNoTicket, at(1));
  recorder.waiting(kNoTicket, at(1));
  recorder.completed(kNoTicket, hostStamp(1), false);
  recorder.released(kNoTicket, hostStamp(1));
  recorder.abandoned(kNoTicket);
  recorder.failed(kNoTicket);
  EXPECT_TRUE(drained(recorder).empty());
}

TEST(Recorder, whatIsToldAfterTheHandOverIsIgnored) {
  Recorder recorder(8);
  recorder.addGroup(1);
  const Ticket late = recorder.enter(entered(OpKind::kAllReduce, 1));
  std::vector<Operation> operations;
  recorder.drainAll(operations);
  // The slot of `late` is used again by the ninth operation.
  for (int i = 0; i < 8; ++i) {
    recorder.enter(entered(OpKind::kAllReduce, 10 + i));
  }
  recorder.issued(late, at(99));
  recorder.completed(late, hostStamp(99), true);
  recorder.released(late, hostStamp(99));
  recorder.abandoned(late);
  recorder.failed(late);
  operations.clear();
  recorder.drainAll(operations);
  ASSERT_EQ(operations.size(), 8U);
  for (const auto& operation : operations) {
    EXPECT_FALSE(operation.failed);
    EXPECT_FALSE(operation.issued.known());
    EXPECT_FALSE(operation.completed.known());
  }
}

TEST(Recorder, openOperationHoldsBackThoseBehindIt) {
  Recorder recorder;
  recorder.addGroup(1);
  const Ticket open = recorder.enter(entered(OpKind::kAllReduce, 1));
  call(recorder);
  EXPECT_TRUE(drained(recorder).empty());
  recorder.issued(open, at(2));
  recorder.completed(open, hostStamp(3), false);
  EXPECT_EQ(drained(recorder).size(), 2U);
}

TEST(Recorder, openOperationIsHandedOverOnceTooManyWaitBehindIt) {
  Recorder recorder;
  recorder.addGroup(1);
  recorder.enter(entered(OpKind::kAllReduce, 1));
  for (std::size_t i = 1; i < Recorder::kMaxHeldBack; ++i) {
    call(recorder);
  }
  EXPECT_TRUE(drained(recorder).empty());
  call(recorder);
  const auto operations = drained(recorder);
  ASSERT_EQ(operations.size(), Recorder::kMaxHeldBack + 1);
  EXPECT_FALSE(operations.front().completed.pending());
  EXPECT_FALSE(operations.front().completed.known()) << "what is still open is unknown, not zero";
}

TEST(Recorder, smallRingIsReleasedAtHalfItsSize) {
  Recorder recorder(8);
  recorder.addGroup(1);
  recorder.enter(entered(OpKind::kAllReduce, 1));
  for (int i = 0; i < 3; ++i) {
    call(recorder);
  }
  EXPECT_TRUE(drained(recorder).empty());
  call(recorder);
  EXPECT_EQ(drained(recorder).size(), 5U);
}

TEST(Recorder, drainTakesNoMoreThanItsLimit) {
  Recorder recorder;
  recorder.addGroup(1);
  for (int i = 0; i < 10; ++i) {
    call(recorder);
  }
  EXPECT_EQ(drained(recorder, 4).size(), 4U);
  EXPECT_EQ(drained(recorder, 4).size(), 4U);
  EXPECT_EQ(drained(recorder, 4).size(), 2U);
}

TEST(Recorder, capturedOperationsAreCounted) {
  Recorder recorder;
  recorder.sawCapture();
  recorder.sawCapture();
  EXPECT_EQ(recorder.captured(), 2U);
}

}  // namespace
}  // namespace straggler
