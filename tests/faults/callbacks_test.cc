// What our callbacks on threads of torch's throw, and what they do without memory: the future keeps its value, the backward
// its gradient, the caller the inner's Work.
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "backend/c10d/input_probe.h"
#include "backend/c10d/observer.h"
#include "backend/c10d/release_probe.h"
#include "backend/c10d/straggler_backend.h"
#include "tests/fakes/failing_new.h"
#include "tests/fakes/recording_backend.h"

namespace straggler {
namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;

constexpr GroupId kGroup = 7;

// A Work that asks for no memory of its own. `living` counts them.
class PlainWork final : public c10d::Work {
 public:
  PlainWork(FuturePtr future, int& living)
      : Work(-1, c10d::OpType::ALLREDUCE), future_(std::move(future)), living_(living) {
    ++living_;
  }
  ~PlainWork() override { --living_; }
  bool isCompleted() override { return completed; }
  bool isSuccess() const override { return true; }
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
  FuturePtr getFuture() override { return future_; }

  bool completed = false;

 private:
  FuturePtr future_;
  int& living_;
};

FuturePtr makeFuture() { return c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get()); }

Call callOn(c10::Device device, bool asynchronous) {
  Call call;
  call.method = "allreduce";
  call.device = device;
  call.asynchronous = asynchronous;
  return call;
}

class CallbacksTest : public testing::Test {
 protected:
  void SetUp() override { recorder_->addGroup(kGroup); }

  // The operations of which nothing more will be learned.
  std::size_t settled() {
    std::vector<Operation> operations;
    recorder_->drain(operations, 10'000);
    return operations.size();
  }

  int living_ = 0;  // Works
  std::shared_ptr<Recorder> recorder_ = std::make_shared<Recorder>();
  std::shared_ptr<Observer> observer_ = std::make_shared<Observer>(recorder_);
};

// ---- The callback of a Work's Future ----

TEST_F(CallbacksTest, theCallbackOfAFutureAsksForNoMemory) {
  const auto asked = [](const FuturePtr& future) {
    const FailingNew counting({.fail = 0});
    future->markCompleted();
    return FailingNew::asked();
  };
  const auto plain = makeFuture();
  plain->addCallback([](c10::ivalue::Future&) {}, false);
  const auto observed = makeFuture();
  const Call call = callOn(c10::kCPU, false);
  observer_->issued(observer_->enter(kGroup, call), call, c10::make_intrusive<PlainWork>(observed, living_));
  EXPECT_EQ(asked(observed), asked(plain));
  EXPECT_TRUE(observed->completed());
  EXPECT_EQ(settled(), 1U);
}

// ---- The call itself ----

TEST_F(CallbacksTest, aCallWithoutMemoryStillGivesItsCallerAWork) {
  for (const bool asynchronous : {false, true}) {
    for (const bool withFuture : {false, true}) {
      const Call call = callOn(c10::kCPU, asynchronous);
      bool hit = true;
      for (std::size_t succeed = 0; hit; ++succeed) {
        const auto future = withFuture ? makeFuture() : nullptr;
        auto inner = c10::make_intrusive<PlainWork>(future, living_);
        WorkPtr given;
        {
          const FailingNew little({.succeed = succeed});
          given = observer_->issued(observer_->enter(kGroup, call), call, inner);
          hit = FailingNew::failed() > 0;
        }
        ASSERT_NE(given, nullptr);
        EXPECT_TRUE(given->wait(std::chrono::milliseconds(1)));
        if (withFuture) {
          future->markCompleted();
        }
        inner->completed = true;
        ASSERT_LT(succeed, 1000U);
      }
    }
  }
  observer_->poll();
  EXPECT_EQ(living_, 0) << "no Work is kept";
}

// ---- The poller ----

TEST_F(CallbacksTest, aPollWithoutMemoryLosesNothing) {
  const Call call = callOn(c10::kMeta, false);
  bool hit = true;
  for (std::size_t succeed = 0; hit; ++succeed) {
    for (int i = 0; i < 20; ++i) {
      auto work = c10::make_intrusive<PlainWork>(nullptr, living_);
      work->completed = true;
      observer_->issued(observer_->enter(kGroup, call), call, work);
    }
    {
      const FailingNew little({.succeed = succeed});
      observer_->poll();
      hit = FailingNew::failed() > 0;
    }
    EXPECT_FALSE(observer_->poll());
    EXPECT_EQ(living_, 0);
    EXPECT_EQ(settled(), 20U);
  }
}

// A disk that hangs keeps the monitor from polling: the Works, and the tensors that they hold, must not gather.
TEST_F(CallbacksTest, worksThatNobodyPollsAreBounded) {
  const Call call = callOn(c10::kMeta, false);
  for (std::size_t i = 0; i < 3 * Observer::kMaxPolled; ++i) {
    observer_->issued(observer_->enter(kGroup, call), call, c10::make_intrusive<PlainWork>(nullptr, living_));
  }
  EXPECT_EQ(static_cast<std::size_t>(living_), Observer::kMaxPolled);
}

// ---- The callbacks of a backward ----

// A callback that throws where it is copied, or where it is called.
struct Throwing {
  bool* whenCopied;
  bool* whenCalled;
  int* calls;

  Throwing(bool* copied, bool* called, int* count) : whenCopied(copied), whenCalled(called), calls(count) {}
  Throwing(const Throwing& other) : Throwing(other.whenCopied, other.whenCalled, other.calls) {
    if (*whenCopied) {
      throw std::bad_alloc();
    }
  }
  Throwing& operator=(const Throwing&) = delete;
  ~Throwing() = default;
  void operator()() const {
    ++*calls;
    if (*whenCalled) {
      throw std::runtime_error("ours");
    }
  }
};

TEST_F(CallbacksTest, whatACallbackOfABackwardThrowsDoesNotEndTheBackward) {
  const std::vector<std::pair<bool, bool>> cases = {{false, false}, {true, false}, {false, true}};
  for (const auto& [copyThrows, callThrows] : cases) {
    bool whenCopied = false;
    bool whenCalled = callThrows;
    int calls = 0;
    const std::function<void()> ours = Throwing(&whenCopied, &whenCalled, &calls);
    const auto weight = at::ones({2}).set_requires_grad(true);
    const auto tripled = weight * 3;
    tripled.register_hook([&, fails = copyThrows](const at::Tensor&) {
      ReleaseProbe::atEnd(ours);
      whenCopied = fails;
    });
    EXPECT_NO_THROW(tripled.sum().backward());
    EXPECT_TRUE(weight.grad().equal(at::full({2}, 3.0)));
    EXPECT_EQ(calls, copyThrows ? 0 : 1);
  }
}

TEST_F(CallbacksTest, aBackwardThatCannotBeWatchedIsNotHeldUp) {
  const Call call = callOn(c10::kCPU, true);
  for (std::size_t succeed = 0; succeed < 6; ++succeed) {
    const auto weight = at::ones({2}).set_requires_grad(true);
    const auto tripled = weight * 3;
    tripled.register_hook([&](const at::Tensor&) {
      const FailingNew little({.succeed = succeed});
      observer_->enter(kGroup, call);
    });
    EXPECT_NO_THROW(tripled.sum().backward());
    EXPECT_TRUE(weight.grad().equal(at::full({2}, 3.0)));
  }
}

// ---- The record-function callbacks ----

TEST_F(CallbacksTest, aFetchThatFindsNoMemoryIsNotSeenAndTheNextOneIs) {
  InputProbe::watch(recorder_);
  const auto fetches = [this] {
    at::RecordFunction scope(at::RecordScope::USER_SCOPE);
    scope.before("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    scope.end();
    std::vector<Fetch> found;
    recorder_->drainFetches(found);
    return found.size();
  };
  {
    const FailingNew none({.onlyNothrow = true});
    EXPECT_EQ(fetches(), 0U);
  }
  EXPECT_EQ(fetches(), 1U);
}

// ---- The session ----

TEST_F(CallbacksTest, aGroupThatThereIsNoMemoryToObserveIsForwardedAndOneLineSaysSo) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto inner = c10::make_intrusive<RecordingBackend>();
  c10::intrusive_ptr<StragglerBackend> outer;
  testing::internal::CaptureStderr();
  {
    const FailingNew little({.larger = std::size_t{1} << 20});  // the ring's 8 MB are not to be had
    outer = c10::make_intrusive<StragglerBackend>(inner, store, "main", std::vector<int>{0});
  }
  inner->forget();
  outer->barrier({});
  outer->shutdown();
  EXPECT_EQ(inner->calls.size(), 2U);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "straggler: group 'main' is not observed: std::bad_alloc; training goes on\n");
}

}  // namespace
}  // namespace straggler
