// How a record is filled in, by kind of call: what is known in the end, where it came from, and when it is handed over.
#include <gtest/gtest.h>

#include "backend/observe/recorder.h"
#include "tests/fakes/operations.h"

namespace straggler {
namespace {

class RecorderSettling : public testing::Test {
 protected:
  RecorderSettling() { recorder_.addGroup(1); }

  Ticket enter(bool asynchronous, int graphTask = kNoGraphTask, OpKind kind = OpKind::kAllReduce) {
    Operation operation = entered(kind, 1);
    operation.asynchronous = asynchronous;
    operation.graphTask = graphTask;
    const Ticket ticket = recorder_.enter(operation);
    recorder_.issued(ticket, at(2));
    return ticket;
  }

  // The operations that are settled by now.
  std::vector<Operation> settled() {
    std::vector<Operation> operations;
    recorder_.drain(operations, 100);
    return operations;
  }
  Operation onlyOne() {
    const auto operations = settled();
    EXPECT_EQ(operations.size(), 1U);
    return operations.empty() ? Operation{} : operations.front();
  }

  Recorder recorder_;
};

void expectStamp(const Stamp& stamp, double milliseconds, StampSource source) {
  EXPECT_EQ(stamp.time, at(milliseconds));
  EXPECT_EQ(toString(stamp.source), toString(source));
}

TEST_F(RecorderSettling, synchronousCallIsReleasedByItsCompletion) {
  const Ticket ticket = enter(false);
  EXPECT_TRUE(settled().empty());
  recorder_.completed(ticket, hostStamp(5), false);
  const Operation operation = onlyOne();
  expectStamp(operation.arrival, 1, StampSource::kHost);
  expectStamp(operation.issued, 2, StampSource::kHost);
  expectStamp(operation.completed, 5, StampSource::kHost);
  expectStamp(operation.released, 5, StampSource::kCompletion);
}

TEST_F(RecorderSettling, synchronousCallWhoseCompletionIsUnknownHasNoRelease) {
  recorder_.completed(enter(false), Stamp::unknown(), false);
  EXPECT_FALSE(onlyOne().released.known());
}

TEST_F(RecorderSettling, asynchronousCallIsReleasedByTheEndOfItsWait) {
  const Ticket ticket = enter(true);
  recorder_.waiting(ticket, at(4));
  recorder_.completed(ticket, {at(5), StampSource::kFuture}, false);
  EXPECT_TRUE(settled().empty()) << "the caller is still in wait()";
  recorder_.released(ticket, {at(6), StampSource::kWait});
  const Operation operation = onlyOne();
  expectStamp(operation.waited, 4, StampSource::kHost);
  expectStamp(operation.completed, 5, StampSource::kFuture);
  expectStamp(operation.released, 6, StampSource::kWait);
}

TEST_F(RecorderSettling, secondWaitChangesNothing) {
  const Ticket ticket = enter(true);
  recorder_.waiting(ticket, at(4));
  recorder_.released(ticket, {at(6), StampSource::kWait});
  recorder_.waiting(ticket, at(8));
  recorder_.released(ticket, {at(9), StampSource::kWait});
  recorder_.completed(ticket, {at(5), StampSource::kFuture}, false);
  recorder_.completed(ticket, {at(10), StampSource::kPoll}, true);
  const Operation operation = onlyOne();
  expectStamp(operation.waited, 4, StampSource::kHost);
  expectStamp(operation.released, 6, StampSource::kWait);
  expectStamp(operation.completed, 5, StampSource::kFuture);
  EXPECT_FALSE(operation.failed);
}

TEST_F(RecorderSettling, endOfAWaitIsNotTheCompletionOfACollective) {
  const Ticket ticket = enter(true);
  recorder_.released(ticket, {at(6), StampSource::kWait});
  EXPECT_TRUE(settled().empty()) << "its completion may still come";
  recorder_.completed(ticket, {at(7), StampSource::kPoll}, false);
  expectStamp(onlyOne().completed, 7, StampSource::kPoll);
}

TEST_F(RecorderSettling, abandonedAsynchronousCallHasNoRelease) {
  const Ticket ticket = enter(true);
  recorder_.abandoned(ticket);
  recorder_.completed(ticket, {at(5), StampSource::kFuture}, false);
  const Operation operation = onlyOne();
  EXPECT_FALSE(operation.released.known()) << "a completion must never stand in for a release";
  expectStamp(operation.completed, 5, StampSource::kFuture);
}

TEST_F(RecorderSettling, waitBeforeTheWorkIsLetGoOfCounts) {
  const Ticket ticket = enter(true);
  recorder_.released(ticket, {at(6), StampSource::kWait});
  recorder_.abandoned(ticket);
  recorder_.completed(ticket, {at(5), StampSource::kFuture}, false);
  expectStamp(onlyOne().released, 6, StampSource::kWait);
}

TEST_F(RecorderSettling, bucketsAreReleasedByTheEndOfTheirBackward) {
  const Ticket first = enter(true, 7);
  const Ticket second = enter(true, 7);
  for (const Ticket ticket : {first, second}) {
    recorder_.completed(ticket, {at(5), StampSource::kFuture}, false);
    recorder_.abandoned(ticket);
  }
  EXPECT_TRUE(settled().empty());
  recorder_.graphTaskReleased(7, at(9));
  const auto operations = settled();
  ASSERT_EQ(operations.size(), 2U);
  for (const auto& operation : operations) {
    expectStamp(operation.released, 9, StampSource::kGraphTask);
  }
}

TEST_F(RecorderSettling, bucketThatWasWaitedForByItselfKeepsItsOwnRelease) {
  const Ticket ticket = enter(true, 7);
  recorder_.released(ticket, {at(6), StampSource::kWait});
  recorder_.completed(ticket, {at(5), StampSource::kFuture}, false);
  recorder_.graphTaskReleased(7, at(9));
  expectStamp(onlyOne().released, 6, StampSource::kWait);
}

TEST_F(RecorderSettling, innerBackwardDoesNotReleaseTheOuter) {
  const Ticket outer = enter(true, 1);
  const Ticket inner = enter(true, 2);
  const Ticket outerAgain = enter(true, 1);
  for (const Ticket ticket : {outer, inner, outerAgain}) {
    recorder_.completed(ticket, {at(5), StampSource::kFuture}, false);
  }
  recorder_.graphTaskReleased(2, at(6));
  EXPECT_TRUE(settled().empty());
  recorder_.graphTaskReleased(1, at(9));
  const auto operations = settled();
  ASSERT_EQ(operations.size(), 3U);
  expectStamp(operations[0].released, 9, StampSource::kGraphTask);
  expectStamp(operations[1].released, 6, StampSource::kGraphTask);
  expectStamp(operations[2].released, 9, StampSource::kGraphTask);
}

TEST_F(RecorderSettling, backwardsOneAfterTheOtherAreReleasedOneByOne) {
  for (int task = 1; task <= 100; ++task) {
    const Ticket ticket = enter(true, task);
    recorder_.completed(ticket, {at(5), StampSource::kFuture}, false);
    recorder_.graphTaskReleased(task, at(10 + task));
    expectStamp(onlyOne().released, 10 + task, StampSource::kGraphTask);
  }
}

TEST_F(RecorderSettling, callThatThrewIsFailedAndNothingOfItIsKnown) {
  Operation operation = entered(OpKind::kAllReduce, 1);
  operation.arrival.source = StampSource::kPending;
  recorder_.failed(recorder_.enter(operation));
  const Operation result = onlyOne();
  EXPECT_TRUE(result.failed);
  expectStamp(result.arrival, 1, StampSource::kHost);
  for (const Stamp& stamp : {result.issued, result.completed, result.waited, result.released}) {
    EXPECT_FALSE(stamp.known());
    EXPECT_FALSE(stamp.pending());
  }
}

TEST_F(RecorderSettling, workThatEndsInAnErrorIsFailed) {
  recorder_.completed(enter(false), hostStamp(5), true);
  EXPECT_TRUE(onlyOne().failed);
}

TEST_F(RecorderSettling, arrivalOfADeviceReplacesTheHostsOwn) {
  Operation operation = entered(OpKind::kAllReduce, 1);
  operation.arrival.source = StampSource::kPending;
  const Ticket told = recorder_.enter(operation);
  const Ticket refused = recorder_.enter(operation);
  for (const Ticket ticket : {told, refused}) {
    recorder_.issued(ticket, at(2));
    recorder_.completed(ticket, hostStamp(5), false);
  }
  EXPECT_TRUE(settled().empty());
  recorder_.arrived(told, {at(3), StampSource::kDeviceEvent});
  recorder_.arrived(refused, Stamp::unknown());
  const auto operations = settled();
  ASSERT_EQ(operations.size(), 2U);
  expectStamp(operations[0].arrival, 3, StampSource::kDeviceEvent);
  expectStamp(operations[1].arrival, 1, StampSource::kHost);
}

TEST_F(RecorderSettling, endOfAWaitIsAllThatAPointToPointCallTells) {
  const Ticket ticket = enter(true, kNoGraphTask, OpKind::kRecv);
  recorder_.released(ticket, {at(6), StampSource::kWait});
  expectStamp(onlyOne().completed, 6, StampSource::kWait);
}

TEST_F(RecorderSettling, abandonedPointToPointCallIsSettled) {
  recorder_.abandoned(enter(true, kNoGraphTask, OpKind::kSend));
  const Operation operation = onlyOne();
  EXPECT_FALSE(operation.completed.known());
  EXPECT_FALSE(operation.released.known());
}

}  // namespace
}  // namespace straggler
