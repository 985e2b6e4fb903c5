// ForwardingBackend: everything reaches the inner backend and comes back untouched.
#include "backend/c10d/forwarding_backend.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/c10d/every_method.h"
#include "tests/c10d/exceptions.h"
#include "tests/fakes/recording_backend.h"

namespace straggler {
namespace {

// Decorates nothing and wraps nothing.
class PlainBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

 protected:
  BackendPtr wrap(BackendPtr made, const std::vector<int>& ranks) override {
    wrapped = ranks;
    return made;
  }

 public:
  std::vector<int> wrapped;
};

struct Pair {
  explicit Pair(int rank = 0, int size = 1)
      : inner(c10::make_intrusive<RecordingBackend>(rank, size)), outer(c10::make_intrusive<PlainBackend>(inner)) {
    inner->forget();
  }

  c10::intrusive_ptr<RecordingBackend> inner;
  c10::intrusive_ptr<PlainBackend> outer;
};

// What the inner is asked and what the caller is told, with and without the wrapper.
void expectForwarded(const Pair& pair, const BackendMethod& method) {
  SCOPED_TRACE(method.name);
  pair.inner->forget();
  const std::string direct = method.call(*pair.inner);
  const auto asked = pair.inner->calls;
  pair.inner->forget();
  EXPECT_EQ(method.call(*pair.outer), direct);
  EXPECT_EQ(pair.inner->calls, asked);
  EXPECT_EQ(asked.size(), 1U);
}

TEST(ForwardingBackend, everyMethodReachesTheInnerWithItsArguments) {
  for (const bool asynchronous : {true, false}) {
    const Pair pair;
    for (const auto& method : everyMethod(asynchronous)) {
      expectForwarded(pair, method);
    }
  }
}

TEST(ForwardingBackend, capabilitiesAreTheInnersWhetherItHasThemOrNot) {
  for (const bool capable : {true, false}) {
    const Pair pair;
    pair.inner->capable = capable;
    for (const auto& method : everyMethod(true)) {
      expectForwarded(pair, method);
    }
  }
}

TEST(ForwardingBackend, noWorkStaysNoWork) {
  const Pair pair;
  pair.inner->givesWorks = false;
  pair.inner->givesBackends = false;
  for (const auto& method : everyMethod(false)) {
    expectForwarded(pair, method);
  }
}

TEST(ForwardingBackend, exceptionsOfTheInnerPassUnchanged) {
  const Pair pair;
  expectExceptionsPassUnchanged(*pair.inner, *pair.outer);
}

TEST(ForwardingBackend, theWorkOfTheInnerIsReturnedItself) {
  const Pair pair;
  std::vector<at::Tensor> tensors{at::ones({1})};
  EXPECT_EQ(pair.outer->allreduce(tensors, {}), pair.inner->lastWork);
}

TEST(ForwardingBackend, whatIsNotVirtualIsCopiedFromTheInner) {
  const auto inner = c10::make_intrusive<RecordingBackend>(3, 5);
  inner->setGroupUid("the name");
  inner->setGroupDesc("the description");
  inner->setUsePgForSymmMemRendezvous(true);
  inner->setBoundDeviceId(at::Device(at::kCUDA, 1));
  const auto outer = c10::make_intrusive<PlainBackend>(inner);
  EXPECT_EQ(outer->getRank(), 3);
  EXPECT_EQ(outer->getSize(), 5);
  EXPECT_EQ(outer->getGroupUid(), "the name");
  EXPECT_EQ(outer->getGroupDesc(), "the description");
  EXPECT_TRUE(outer->getUsePgForSymmMemRendezvous());
  EXPECT_EQ(outer->getBoundDeviceId(), at::Device(at::kCUDA, 1));
}

TEST(ForwardingBackend, aNewNameIsHeardOnBothSides) {
  const Pair pair;
  pair.outer->setGroupUid("later");
  EXPECT_EQ(pair.outer->getGroupUid(), "later");
  EXPECT_EQ(pair.inner->getGroupUid(), "later");
}

TEST(ForwardingBackend, hasHooksAsTheInnerHas) {
  const Pair pair;
  EXPECT_FALSE(pair.outer->hasHooks());
  pair.inner->throws = std::make_exception_ptr(Unusual("no hooks here"));
  EXPECT_THROW(pair.outer->registerOnCompletionHook([](auto) {}), Unusual);
  EXPECT_FALSE(pair.outer->hasHooks());
  pair.inner->throws = nullptr;
  pair.outer->registerOnCompletionHook([](auto) {});
  EXPECT_TRUE(pair.inner->hasHooks());
  EXPECT_TRUE(pair.outer->hasHooks());
}

#if STRAGGLER_TORCH >= 214
TEST(ForwardingBackend, rankAndSizeFollowAReconfiguration) {
  const Pair pair(0, 2);
  pair.inner->newRank = 2;
  pair.inner->newSize = 4;
  pair.outer->reconfigure({});
  EXPECT_EQ(pair.outer->getRank(), 2);
  EXPECT_EQ(pair.outer->getSize(), 4);
}
#endif

TEST(ForwardingBackend, aGroupThatTheInnerMadeIsWrappedWithItsRanks) {
  const Pair pair(1, 4);
  pair.outer->split(nullptr, {3, 1}, nullptr);
  EXPECT_EQ(pair.outer->wrapped, (std::vector<int>{3, 1}));
  pair.outer->shrink({0, 2}, 0, nullptr);
  EXPECT_EQ(pair.outer->wrapped, (std::vector<int>{1, 3}));
  pair.outer->merge(nullptr, nullptr, 0, 6);
  EXPECT_TRUE(pair.outer->wrapped.empty()) << "a merged group has members that nobody told of";
}

}  // namespace
}  // namespace straggler
