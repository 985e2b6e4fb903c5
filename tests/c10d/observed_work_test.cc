// ObservedWork and its Observer: the caller's Work behaves as the inner's, and a record tells what became of it.
#include "backend/c10d/observed_work.h"

#include <stdexcept>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>

#include "backend/c10d/observer.h"
#include "tests/c10d/exceptions.h"
#include "tests/fakes/recording_work.h"

namespace straggler {
namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

constexpr GroupId kGroup = 7;
constexpr std::chrono::milliseconds kTimeout{321};

Call asynchronousCall(OpKind kind = OpKind::kAllReduce) {
  Call call;
  call.kind = kind;
  call.method = "allreduce";
  return call;
}

Call synchronousCall(OpKind kind = OpKind::kAllReduce) {
  Call call = asynchronousCall(kind);
  call.asynchronous = false;
  return call;
}

class ObservedWorkTest : public testing::Test {
 protected:
  void SetUp() override { recorder_->addGroup(kGroup); }

  // What the caller gets for a call of which the inner gave `work`.
  WorkPtr issue(const Call& call, WorkPtr work) {
    return observer_->issued(observer_->enter(kGroup, call), call, std::move(work));
  }

  // The operations of which nothing more will be learned.
  std::vector<Operation> settled() {
    std::vector<Operation> operations;
    recorder_->drain(operations, 100);
    return operations;
  }
  Operation onlySettled() {
    const auto operations = settled();
    EXPECT_EQ(operations.size(), 1U);
    return operations.empty() ? Operation() : operations.front();
  }

  std::shared_ptr<Recorder> recorder_ = std::make_shared<Recorder>();
  std::shared_ptr<Observer> observer_ = std::make_shared<Observer>(recorder_);
  c10::intrusive_ptr<RecordingWork> inner_ = c10::make_intrusive<RecordingWork>(77);
};

// ---- Forwarding ----

struct WorkMethod {
  std::string name;
  std::function<std::string(c10d::Work& work)> call;  // tells the result
};

std::vector<WorkMethod> everyWorkMethod() {
  using W = c10d::Work;
  std::vector<WorkMethod> all;
  const auto gives = [&](const char* name, auto method) {
    all.push_back({name, [method](W& work) { return CallText::of("result", method(work)); }});
  };
  const auto does = [&](const char* name, auto method) {
    all.push_back({name, [method](W& work) {
                     method(work);
                     return std::string();
                   }});
  };
  gives("isCompleted", [](W& w) { return w.isCompleted(); });
  gives("isSuccess", [](W& w) { return w.isSuccess(); });
  gives("exception", [](W& w) { return w.exception() != nullptr; });
  gives("sourceRank", [](W& w) { return w.sourceRank(); });
  gives("result", [](W& w) { return w.result(); });
  does("synchronize", [](W& w) { w.synchronize(); });
  gives("wait", [](W& w) { return w.wait(kTimeout); });
  does("blockCurrentStream", [](W& w) { w.blockCurrentStream(); });
  does("abort", [](W& w) { w.abort(); });
  gives("getFuture", [](W& w) { return w.getFuture(); });
  gives("getFutureResult", [](W& w) { return w.getFutureResult(); });
  gives("getDuration", [](W& w) { return w.getDuration(); });
  gives("getSequencenumber", [](W& w) { return w.getSequencenumber(); });
#if STRAGGLER_TORCH >= 215
  gives("getTimeout", [](W& w) { return w.getTimeout(); });
  gives("getCompletionKey", [](W& w) { return w.getCompletionKey(); });
#endif
  return all;
}

TEST_F(ObservedWorkTest, everyMethodReachesTheInnerWithItsArguments) {
  inner_->future = RecordingWork::makeFuture();
  inner_->tensors = {at::ones({3})};
  inner_->error = std::make_exception_ptr(Unusual("kept"));
  const WorkPtr outer = issue(asynchronousCall(), inner_);
  ASSERT_NE(outer, inner_);
  for (const bool yes : {false, true}) {
    inner_->completed = inner_->successful = yes;
    for (const auto& method : everyWorkMethod()) {
      SCOPED_TRACE(method.name);
      inner_->calls.clear();
      const std::string direct = method.call(*inner_);
      const auto asked = std::exchange(inner_->calls, {});
      EXPECT_EQ(method.call(*outer), direct);
      EXPECT_EQ(inner_->calls, asked);
    }
  }
}

TEST_F(ObservedWorkTest, exceptionsOfTheInnerPassUnchanged) {
  inner_->future = RecordingWork::makeFuture();
  const WorkPtr outer = issue(asynchronousCall(), inner_);
  for (const auto& method : everyWorkMethod()) {
    SCOPED_TRACE(method.name);
    inner_->throws = std::make_exception_ptr(Unusual(method.name + ": the inner's own words"));
    try {
      method.call(*outer);
      ADD_FAILURE() << "the exception did not come through";
    } catch (const Unusual& error) {
      EXPECT_EQ(error.what(), method.name + ": the inner's own words");
    }
  }
}

TEST_F(ObservedWorkTest, theKindOfOperationIsTheInners) {
  EXPECT_EQ(issue(asynchronousCall(), inner_)->retrieveOpType(), c10d::OpType::ALLREDUCE);
}

// ---- Release ----

TEST_F(ObservedWorkTest, theReleaseIsTheEndOfTheWait) {
  inner_->completed = true;
  const WorkPtr outer = issue(asynchronousCall(), inner_);
  observer_->poll();
  EXPECT_TRUE(settled().empty()) << "nobody has waited yet";
  const Instant before = SteadyClock().now();
  outer->wait(kTimeout);
  const Operation operation = onlySettled();
  EXPECT_EQ(operation.released.source, StampSource::kWait);
  EXPECT_LE(before, operation.waited.time);
  EXPECT_LE(operation.waited.time, inner_->lastWait);
  EXPECT_GE(operation.released.time, inner_->lastWait);
}

TEST_F(ObservedWorkTest, onlyTheFirstWaitCounts) {
  const WorkPtr outer = issue(asynchronousCall(), inner_);
  outer->wait(kTimeout);
  const Instant between = SteadyClock().now();
  outer->wait(kTimeout);
  inner_->completed = true;
  observer_->poll();
  const Operation operation = onlySettled();
  EXPECT_LE(operation.waited.time, between);
  EXPECT_LE(operation.released.time, between);
}

TEST_F(ObservedWorkTest, theReleaseIsUnknownIfNobodyWaits) {
  inner_->completed = true;
  WorkPtr outer = issue(asynchronousCall(), inner_);
  observer_->poll();
  outer.reset();
  const Operation operation = onlySettled();
  EXPECT_TRUE(operation.completed.known());
  EXPECT_EQ(operation.released.source, StampSource::kUnknown);
}

TEST_F(ObservedWorkTest, theReleaseIsUnknownAfterAWaitThatThrows) {
  WorkPtr outer = issue(asynchronousCall(), inner_);
  inner_->throws = std::make_exception_ptr(Unusual("timed out"));
  EXPECT_THROW(outer->wait(kTimeout), Unusual);
  observer_->poll();
  outer.reset();
  const Operation operation = onlySettled();
  EXPECT_TRUE(operation.waited.known());
  EXPECT_EQ(operation.released.source, StampSource::kUnknown);
}

TEST_F(ObservedWorkTest, aSynchronousCallGetsTheInnersWorkAndIsReleasedByItsCompletion) {
  inner_->future = RecordingWork::makeFuture();
  EXPECT_EQ(issue(synchronousCall(), inner_), inner_);
  inner_->future->markCompleted();
  const Operation operation = onlySettled();
  EXPECT_EQ(operation.released.source, StampSource::kCompletion);
  EXPECT_EQ(operation.released.time, operation.completed.time);
}

TEST_F(ObservedWorkTest, noWorkIsAClosedRecord) {
  EXPECT_EQ(issue(synchronousCall(), nullptr), nullptr);
  Operation operation = onlySettled();
  EXPECT_EQ(operation.completed.source, StampSource::kHost);
  EXPECT_EQ(operation.released.source, StampSource::kCompletion);

  // A caller that wanted a Work and got none: when it goes on is not known.
  EXPECT_EQ(issue(asynchronousCall(), nullptr), nullptr);
  operation = onlySettled();
  EXPECT_EQ(operation.completed.source, StampSource::kHost);
  EXPECT_EQ(operation.released.source, StampSource::kUnknown);

  EXPECT_EQ(issue(asynchronousCall(OpKind::kSend), nullptr), nullptr);
  EXPECT_EQ(onlySettled().completed.source, StampSource::kHost);
}

// The collectives of a backward, and what a reducer does there: it queues a callback that waits for them.
TEST_F(ObservedWorkTest, aBackwardReleasesItsOperationsAfterTheReducersWait) {
  std::vector<WorkPtr> works;
  Instant reducerDone;
  const auto collective = [&] {
    const auto inner = c10::make_intrusive<RecordingWork>();
    inner->completed = true;
    works.push_back(issue(asynchronousCall(), inner));
  };
  const auto weight = at::ones({2}).set_requires_grad(true);
  const auto early = weight * 2;
  const auto late = early * 3;
  late.register_hook([&](const at::Tensor&) { collective(); });
  early.register_hook([&](const at::Tensor&) {
    collective();
    torch::autograd::Engine::get_default_engine().queue_callback([&] {
      observer_->poll();
      EXPECT_TRUE(settled().empty()) << "the reducer still waits";
      reducerDone = SteadyClock().now();
    });
  });
  collective();
  works.clear();
  observer_->poll();
  const Operation outside = onlySettled();
  EXPECT_EQ(outside.graphTask, kNoGraphTask);
  late.sum().backward();
  const Instant returned = SteadyClock().now();
  works.clear();
  const auto operations = settled();
  ASSERT_EQ(operations.size(), 2U);
  for (const auto& operation : operations) {
    EXPECT_NE(operation.graphTask, kNoGraphTask);
    EXPECT_EQ(operation.graphTask, operations.front().graphTask);
    EXPECT_EQ(operation.released.source, StampSource::kGraphTask);
    EXPECT_GE(operation.released.time, reducerDone);
    EXPECT_LE(operation.released.time, returned);
  }
}

// ---- Completion ----

TEST_F(ObservedWorkTest, aFutureTellsOfTheCompletion) {
  inner_->future = RecordingWork::makeFuture();
  const WorkPtr outer = issue(synchronousCall(), inner_);
  EXPECT_FALSE(observer_->poll()) << "there is nothing to poll for";
  EXPECT_TRUE(settled().empty());
  inner_->future->markCompleted();
  const Operation operation = onlySettled();
  EXPECT_EQ(operation.completed.source, StampSource::kFuture);
  EXPECT_FALSE(operation.failed);
}

TEST_F(ObservedWorkTest, aFutureWithAnErrorIsAFailedOperation) {
  inner_->future = RecordingWork::makeFuture();
  const WorkPtr outer = issue(synchronousCall(), inner_);
  inner_->future->setError(std::make_exception_ptr(Unusual("the peer is gone")));
  EXPECT_TRUE(onlySettled().failed);
}

TEST_F(ObservedWorkTest, aWorkWithAFutureIsNotKept) {
  inner_->future = RecordingWork::makeFuture();
  const auto future = inner_->future;
  const c10::weak_intrusive_ptr<RecordingWork> weak(inner_);
  issue(asynchronousCall(), std::exchange(inner_, nullptr));
  EXPECT_TRUE(weak.expired());
  future->markCompleted();
  EXPECT_EQ(onlySettled().completed.source, StampSource::kFuture);
}

TEST_F(ObservedWorkTest, aWorkWithoutAFutureIsPolledAndLetGoOnceDone) {
  const WorkPtr outer = issue(synchronousCall(), inner_);
  EXPECT_TRUE(observer_->poll());
  EXPECT_TRUE(settled().empty());
  inner_->completed = true;
  EXPECT_FALSE(observer_->poll());
  EXPECT_EQ(inner_.use_count(), 2U) << "the test's and the outer Work's";
  EXPECT_EQ(onlySettled().completed.source, StampSource::kPoll);
}

// Gloo's reduce_scatter: it has no Future, and isCompleted() stays false.
TEST_F(ObservedWorkTest, aWorkThatNeverSaysThatItIsDoneIsDoneWhenItsCallerHasWaited) {
  for (const auto& call : {synchronousCall(), asynchronousCall()}) {
    const WorkPtr outer = issue(call, inner_);
    EXPECT_TRUE(observer_->poll());
    outer->wait(kTimeout);
    EXPECT_FALSE(observer_->poll());
    const Operation operation = onlySettled();
    EXPECT_EQ(operation.completed.source, StampSource::kWait);
    EXPECT_EQ(operation.released.source, call.asynchronous ? StampSource::kWait : StampSource::kCompletion);
    EXPECT_EQ(operation.released.time, operation.completed.time);
  }
}

TEST_F(ObservedWorkTest, aWorkThatIsPolledIsLetGoWithItsCaller) {
  const c10::weak_intrusive_ptr<RecordingWork> weak(inner_);
  issue(asynchronousCall(), std::exchange(inner_, nullptr));
  EXPECT_TRUE(weak.expired());
  EXPECT_FALSE(observer_->poll());
  EXPECT_EQ(onlySettled().completed.source, StampSource::kUnknown);
}

TEST_F(ObservedWorkTest, aKindWithoutFuturesIsAskedForOneOnce) {
  const auto second = c10::make_intrusive<RecordingWork>();
  const auto another = c10::make_intrusive<RecordingWork>();
  issue(synchronousCall(), inner_);
  issue(synchronousCall(), second);
  issue(synchronousCall(OpKind::kBroadcast), another);
  EXPECT_EQ(inner_->calls, std::vector<std::string>{"getFuture()"});
  EXPECT_TRUE(second->calls.empty());
  EXPECT_EQ(another->calls, std::vector<std::string>{"getFuture()"});
}

TEST_F(ObservedWorkTest, aPolledWorkThatFailedIsAFailedOperation) {
  inner_->completed = true;
  inner_->successful = false;
  const WorkPtr outer = issue(synchronousCall(), inner_);
  observer_->poll();
  EXPECT_TRUE(onlySettled().failed);
}

TEST_F(ObservedWorkTest, aWorkThatCannotBeAskedIsLetGo) {
  const WorkPtr outer = issue(synchronousCall(), inner_);
  inner_->throws = std::make_exception_ptr(Unusual("aborted"));
  EXPECT_FALSE(observer_->poll());
  const Operation operation = onlySettled();
  EXPECT_TRUE(operation.failed);
  EXPECT_EQ(operation.completed.source, StampSource::kUnknown);
}

// A receive may stay open for as long as the peer likes: nobody polls it.
TEST_F(ObservedWorkTest, pointToPointIsDoneWhenItsCallerHasWaited) {
  const WorkPtr outer = issue(asynchronousCall(OpKind::kRecv), inner_);
  EXPECT_FALSE(observer_->poll());
  EXPECT_TRUE(inner_->calls.empty());
  outer->wait(kTimeout);
  const Operation operation = onlySettled();
  EXPECT_EQ(operation.completed.source, StampSource::kWait);
  EXPECT_EQ(operation.completed.time, operation.released.time);
}

// ---- What cannot be recorded ----

TEST_F(ObservedWorkTest, anOperationThatFindsTheRingFullIsLeftAlone) {
  recorder_ = std::make_shared<Recorder>(1);
  recorder_->addGroup(kGroup);
  observer_ = std::make_shared<Observer>(recorder_);
  const WorkPtr first = issue(asynchronousCall(), inner_);
  const auto second = c10::make_intrusive<RecordingWork>();
  EXPECT_EQ(issue(asynchronousCall(), second), second);
  EXPECT_TRUE(second->calls.empty());
  EXPECT_EQ(recorder_->dropped(), 1U);
}

}  // namespace
}  // namespace straggler
