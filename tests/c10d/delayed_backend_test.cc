// DelayedBackend: which calls it holds up, and for how long. Where only the number of delays matters, they are counted
// and not slept.
#include "backend/c10d/delayed_backend.h"

#include <chrono>
#include <stdexcept>

#include <gtest/gtest.h>

#include "backend/c10d/blocking.h"
#include "tests/c10d/every_method.h"
#include "tests/fakes/recording_backend.h"

namespace straggler {
namespace {

int delays = 0;

class DelayedBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    delays = 0;
    setBlockingGuard([](c10::function_ref<void()>) { ++delays; });
  }
  void TearDown() override { setBlockingGuard(nullptr); }

  static c10::intrusive_ptr<DelayedBackend> make(const std::string& rules, int globalRank = 2) {
    return c10::make_intrusive<DelayedBackend>(c10::make_intrusive<RecordingBackend>(), globalRank, rules);
  }

  // Which of `count` collectives are delayed.
  static std::vector<int> delayed(c10d::Backend& backend, int count) {
    std::vector<int> result;
    for (int i = 0; i < count; ++i) {
      const int before = delays;
      backend.barrier({});
      if (delays > before) {
        result.push_back(i);
      }
    }
    return result;
  }
};

TEST_F(DelayedBackendTest, aRuleNamesARankOrAll) {
  EXPECT_EQ(delayed(*make("rank=2 ms=1"), 3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(delayed(*make("rank=1 ms=1"), 3), std::vector<int>{});
  EXPECT_EQ(delayed(*make("rank=-1 ms=1"), 3), (std::vector<int>{0, 1, 2}));
}

TEST_F(DelayedBackendTest, aRuleHoldsFromOneCollectiveToAnotherEverySoOften) {
  EXPECT_EQ(delayed(*make("rank=2 ms=1 from=3 to=-1 every=1"), 6), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(delayed(*make("rank=2 ms=1 from=1 to=2 every=1"), 6), (std::vector<int>{1, 2}));
  EXPECT_EQ(delayed(*make("rank=2 ms=1 from=1 to=-1 every=4"), 10), (std::vector<int>{1, 5, 9}));
}

TEST_F(DelayedBackendTest, chanceRepeatsWithItsSeed) {
  const std::string half = "rank=2 ms=1 probability=0.5 seed=";
  const auto drawn = delayed(*make(half + "1"), 200);
  EXPECT_GT(drawn.size(), 60U);
  EXPECT_LT(drawn.size(), 140U);
  EXPECT_EQ(delayed(*make(half + "1"), 200), drawn);
  EXPECT_NE(delayed(*make(half + "2"), 200), drawn);
  EXPECT_EQ(delayed(*make("rank=2 ms=1 probability=0"), 50), std::vector<int>{});
}

TEST_F(DelayedBackendTest, rulesAddUp) {
  setBlockingGuard(nullptr);
  const auto backend = make("rank=2 ms=30\nrank=-1 ms=20\nrank=0 ms=5000\n");
  const auto begin = std::chrono::steady_clock::now();
  backend->barrier({});
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(50));
  EXPECT_LT(took, std::chrono::milliseconds(2000));
}

TEST_F(DelayedBackendTest, pointToPointIsNeitherDelayedNorCounted) {
  const auto backend = make("rank=2 ms=1 from=1 to=1");
  std::vector<at::Tensor> tensors{at::ones({1})};
  backend->send(tensors, 0, 0);
  backend->recv(tensors, 0, 0);
  EXPECT_EQ(delayed(*backend, 3), std::vector<int>{1});
}

TEST_F(DelayedBackendTest, theDelayComesBeforeTheInnerIsCalled) {
  static RecordingBackend* inner = nullptr;
  const auto backend = make("rank=2 ms=1");
  inner = dynamic_cast<RecordingBackend*>(backend->inner().get());
  inner->forget();
  setBlockingGuard([](c10::function_ref<void()>) { delays += inner->calls.empty() ? 1 : 100; });
  backend->barrier({});
  EXPECT_EQ(delays, 1);
  EXPECT_EQ(inner->calls.size(), 1U);
}

TEST_F(DelayedBackendTest, groupsMadeFromItAreDelayedToo) {
  const auto made = make("rank=2 ms=1")->split(nullptr, {0}, nullptr);
  EXPECT_EQ(delayed(*made, 2), (std::vector<int>{0, 1}));
}

TEST_F(DelayedBackendTest, everyMethodReachesTheInnerWithItsArguments) {
  const auto inner = c10::make_intrusive<RecordingBackend>();
  const auto outer = c10::make_intrusive<DelayedBackend>(inner, 2, "rank=2 ms=1");
  for (const auto& method : everyMethod(true)) {
    SCOPED_TRACE(method.name);
    inner->forget();
    const std::string direct = method.call(*inner);
    const auto asked = inner->calls;
    inner->forget();
    EXPECT_EQ(method.call(*outer), direct);
    EXPECT_EQ(inner->calls, asked);
  }
}

TEST_F(DelayedBackendTest, textThatIsNoRuleIsRefusedByName) {
  for (const auto& [rules, said] :
       std::vector<std::pair<std::string, std::string>>{{"rank=two", "rank='two' is not a number"},
                                                        {"rank=2 ms=", "ms='' is not a number"},
                                                        {"rank=2 ms=8ms", "ms='8ms' is not a number"},
                                                        {"rank=2 ms", "ms='' is not a number"},
                                                        {"rank=2 ms=3600001", "ms='3600001' is out of bounds"},
                                                        {"rank=2 ms=-1", "ms='-1' is out of bounds"},
                                                        {"rank=2 ms=nan", "ms='nan' is out of bounds"},
                                                        {"rank=2147483648", "rank='2147483648' is out of bounds"},
                                                        {"rank=2 every=0", "every='0' is out of bounds"},
                                                        {"rank=2 from=-1", "from='-1' is out of bounds"},
                                                        {"probability=1.5", "probability='1.5' is out of bounds"},
                                                        {"rank=2 delay=8", "unknown field 'delay'"}}) {
    try {
      parseDelayRules(rules);
      ADD_FAILURE() << rules << " was taken";
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(), "injection rule: " + said);
    }
  }
}

}  // namespace
}  // namespace straggler
