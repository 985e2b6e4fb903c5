// On the kernel that the tests run on, which may keep no account of threads.
#include "backend/session/thread_times.h"

#include <time.h>
#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

namespace straggler {
namespace {

Duration ownCpuTime() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
}

void burn(Duration duration) {
  const Duration end = ownCpuTime() + duration;
  while (ownCpuTime() < end) {
  }
}

TEST(ThreadTimes, processorTimeThatIsBurnedShows) {
  burn(std::chrono::milliseconds(30));  // until the kernel has accounted for something
  const auto before = threadTimes(gettid());
  if (!before) {
    GTEST_SKIP() << "this kernel has no /proc/self/task/*/schedstat: run on one with CONFIG_SCHED_INFO";
  }
  burn(std::chrono::milliseconds(200));
  const auto after = threadTimes(gettid());
  ASSERT_TRUE(after);
  // The account may be older than the burning by one tick, at either end.
  EXPECT_NEAR(toMilliseconds(after->cpu - before->cpu), 200, 30);
  EXPECT_GE(after->runDelay, before->runDelay);
}

TEST(ThreadTimes, timeOfAnotherThreadIsNotCounted) {
  burn(std::chrono::milliseconds(30));
  const auto before = threadTimes(gettid());
  if (!before) {
    GTEST_SKIP() << "this kernel has no /proc/self/task/*/schedstat: run on one with CONFIG_SCHED_INFO";
  }
  std::thread other([] { burn(std::chrono::milliseconds(200)); });
  other.join();
  EXPECT_LT(threadTimes(gettid())->cpu - before->cpu, std::chrono::milliseconds(100));
}

TEST(ThreadTimes, threadThatIsNotThereHasNone) {
  EXPECT_FALSE(threadTimes(0));
  EXPECT_FALSE(threadTimes(-1));
  int ended = 0;
  std::thread([&ended] { ended = gettid(); }).join();
  EXPECT_FALSE(threadTimes(ended));
}

}  // namespace
}  // namespace straggler
