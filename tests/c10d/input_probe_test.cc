// InputProbe: which of torch's scopes become fetches of which recorder.
#include "backend/c10d/input_probe.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ATen/record_function.h>
#include <gtest/gtest.h>

namespace straggler {
namespace {

// As torch's DataLoader makes one, with what is done in it.
template <class F>
void scope(const std::string& name, F&& inside) {
  at::RecordFunction scope(at::RecordScope::USER_SCOPE);
  scope.before(name);
  inside();
}
void fetch() {
  scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", [] {});
}

std::vector<Fetch> fetchesOf(Recorder& recorder) {
  std::vector<Fetch> fetches;
  recorder.drainFetches(fetches);
  return fetches;
}

class InputProbeTest : public testing::Test {
 protected:
  void SetUp() override { InputProbe::watch(recorder_); }
  std::shared_ptr<Recorder> recorder_ = std::make_shared<Recorder>(4);
};

TEST_F(InputProbeTest, fetchIsToldFromItsBeginToItsEnd) {
  const Instant before = SteadyClock().now();
  fetch();
  const auto fetches = fetchesOf(*recorder_);
  ASSERT_EQ(fetches.size(), 1U);
  EXPECT_LE(before, fetches[0].begin);
  EXPECT_LE(fetches[0].begin, fetches[0].end);
  EXPECT_LE(fetches[0].end, SteadyClock().now());
}

TEST_F(InputProbeTest, otherScopesAreNoFetches) {
  for (const char* name : {"", "e", "Optimizer.step#SGD.step", "enumerate(DataPipe)#Mapper", "enumerate(DataLoader)"}) {
    scope(name, [] {});
  }
  EXPECT_TRUE(fetchesOf(*recorder_).empty());
}

TEST_F(InputProbeTest, fetchWithinAFetchLiesWithinIt) {
  scope("enumerate(DataLoader)#outer", [] { fetch(); });
  const auto fetches = fetchesOf(*recorder_);
  ASSERT_EQ(fetches.size(), 2U);
  EXPECT_LE(fetches[1].begin, fetches[0].begin);
  EXPECT_LE(fetches[0].end, fetches[1].end);
}

TEST_F(InputProbeTest, fetchThatThrowsIsTold) {
  const auto failing = [] { scope("enumerate(DataLoader)#f", [] { throw std::out_of_range("the data ends"); }); };
  EXPECT_THROW(failing(), std::out_of_range);
  EXPECT_EQ(fetchesOf(*recorder_).size(), 1U);
}

TEST_F(InputProbeTest, fetchOfAnotherThreadIsNotTold) {
  std::thread(fetch).join();
  EXPECT_TRUE(fetchesOf(*recorder_).empty());
}

TEST_F(InputProbeTest, theRecorderThatIsWatchedLastHearsOfItOnce) {
  const auto next = std::make_shared<Recorder>(4);
  InputProbe::watch(next);
  fetch();
  EXPECT_TRUE(fetchesOf(*recorder_).empty());
  EXPECT_EQ(fetchesOf(*next).size(), 1U);
}

TEST_F(InputProbeTest, recorderThatIsGoneIsNotTouchedEvenIfItGoesWithinAFetch) {
  scope("enumerate(DataLoader)#f", [this] { recorder_.reset(); });
  fetch();
  InputProbe::watch(recorder_ = std::make_shared<Recorder>(4));
  fetch();
  EXPECT_EQ(fetchesOf(*recorder_).size(), 1U);
}

TEST_F(InputProbeTest, callbackOfAnotherStandsBesideIt) {
  static int seen = 0;
  const auto other = at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction&) {
    ++seen;
    return std::unique_ptr<at::ObserverContext>();
  }));
  fetch();
  at::removeCallback(other);
  fetch();
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(fetchesOf(*recorder_).size(), 2U);
}

}  // namespace
}  // namespace straggler
