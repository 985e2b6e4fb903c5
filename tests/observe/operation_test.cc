#include "backend/observe/operation.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/fakes/operations.h"

namespace straggler {
namespace {

std::vector<OpKind> allKinds() {
  std::vector<OpKind> kinds;
  for (int i = 0; i < kOpKinds; ++i) {
    kinds.push_back(static_cast<OpKind>(i));
  }
  return kinds;
}

TEST(Operation, everyKindHasANameOfItsOwnThatReadsBack) {
  std::set<std::string_view> names;
  for (const OpKind kind : allKinds()) {
    EXPECT_TRUE(names.insert(toString(kind)).second) << toString(kind);
    EXPECT_EQ(opKindFromString(toString(kind)), kind);
  }
  EXPECT_EQ(opKindFromString("all_reduce_coalesced"), std::nullopt);
  EXPECT_EQ(opKindFromString(""), std::nullopt);
}

TEST(Operation, everySourceHasAName) {
  EXPECT_EQ(toString(StampSource::kPending), "pending");
  EXPECT_EQ(toString(StampSource::kDeviceEvent), "device_event");
  EXPECT_EQ(toString(StampSource::kGraphTask), "graph_task");
}

TEST(Operation, onlyPointToPointCallsAreNotNumbered) {
  for (const OpKind kind : allKinds()) {
    const bool p2p = kind == OpKind::kSend || kind == OpKind::kRecv || kind == OpKind::kBatchedP2P;
    EXPECT_EQ(isNumbered(kind), !p2p) << toString(kind);
  }
}

TEST(Operation, onlyNByNOperationsCompleteTogether) {
  const std::set<OpKind> together = {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kAllToAll,
                                     OpKind::kBarrier};
  for (const OpKind kind : allKinds()) {
    EXPECT_EQ(completesTogether(kind), together.contains(kind)) << toString(kind);
  }
}

TEST(Operation, groupIdIsTheSameForTheSameNameOnEveryRank) {
  EXPECT_EQ(groupId(""), 2166136261U);
  EXPECT_EQ(groupId("a"), 0xE40C292CU);  // FNV-1a's published test vector
  EXPECT_NE(groupId("0"), groupId("1"));
}

TEST(Operation, stampIsKnownPendingOrUnknown) {
  EXPECT_TRUE(Stamp{}.pending());
  EXPECT_FALSE(Stamp{}.known());
  EXPECT_FALSE(Stamp::unknown().pending());
  EXPECT_FALSE(Stamp::unknown().known());
  EXPECT_TRUE(hostStamp(1).known());
}

TEST(Operation, isSettledWhenNothingMoreWillBeLearned) {
  Operation operation = synchronous(1, 2);
  EXPECT_TRUE(operation.settled()) << "a call that nobody waits for has no beginning of a wait";
  for (Stamp Operation::*stamp :
       {&Operation::arrival, &Operation::issued, &Operation::completed, &Operation::released}) {
    Operation open = operation;
    open.*stamp = Stamp{};
    EXPECT_FALSE(open.settled());
    open.*stamp = Stamp::unknown();
    EXPECT_TRUE(open.settled());
  }
}

}  // namespace
}  // namespace straggler
