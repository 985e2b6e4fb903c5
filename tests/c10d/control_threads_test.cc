// The threads of a mitigated group, over a real store: what they carry, how they end, and that a forked child waits for none.
#include "backend/c10d/control_threads.h"

#include <sys/wait.h>
#include <unistd.h>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "backend/c10d/store_channel.h"
#include "tests/fakes/held_backend.h"
#include "tests/fakes/store_server.h"

namespace straggler {
namespace {

using std::chrono::milliseconds;

class ControlThreadsTest : public testing::Test {
 protected:
  // One of two ranks; what is said goes to `failure`.
  struct Rank {
    Rank(const StoreServer& server, int number)
        : inner(c10::make_intrusive<HeldBackend>(number, 2)),
          carrier(std::make_shared<Carrier>(inner, options(number), milliseconds(60'000))),
          threads(carrier, std::make_unique<StoreChannel>(server.client(), "n", number),
                  {2, 1, MitigationMode::kCarry, number == 0},
                  {.failed = [this](const std::string& reason) { hear(reason); },
                   .filled = [](const std::vector<Participation>&) {},
                   .raises = [this](const std::string& reason) { hear("raises: " + reason); },
                   .looked = [] {}}) {
      threads.start();
    }

    static Engine::Options options(int number) {
      Engine::Options options;
      options.rank = number;
      options.grace = Duration{};
      return options;
    }
    void arrive() {
      SlotOperation bucket;
      bucket.kind = SlotOperation::Kind::kAllReduce;
      bucket.bucket = 0;
      bucket.dtype = static_cast<std::int8_t>(at::kFloat);
      bucket.elements = 2;
      bucket.bytes = 8;
      std::vector<at::Tensor> tensors{at::ones({2})};
      const Carrier::Form form{tensors.front().options(), {}};
      carrier->arrive(bucket, "an all_reduce", tensors.data(), &form, [&] { return inner->allreduce(tensors, {}); });
    }
    void hear(const std::string& reason) {
      const MutexLock lock(mutex);
      failure = reason;
    }
    std::string said() {
      const MutexLock lock(mutex);
      return failure;
    }

    c10::intrusive_ptr<HeldBackend> inner;
    std::shared_ptr<Carrier> carrier;
    Mutex mutex;
    std::string failure;
    ControlThreads threads;
  };

  template <class Condition>
  static bool becomes(Condition condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    return condition();
  }
  static std::uint64_t filled(const Rank& rank) {
    return rank.carrier->with([](const Engine& engine) { return engine.filledByProxy(); });
  }
};

TEST_F(ControlThreadsTest, aRankThatWaitsHasTheSlotOfALateOneFilled) {
  const StoreServer server;
  Rank zero(server, 0);
  Rank one(server, 1);
  zero.arrive();
  one.arrive();
  zero.inner->complete(0, 2);
  zero.arrive();
  EXPECT_TRUE(becomes([&] { return filled(one) == 1; }));
  EXPECT_GT(zero.threads.messages(), 0U);
  EXPECT_EQ(zero.said() + one.said(), "");
}

TEST_F(ControlThreadsTest, aSlotThatCannotBeFilledIsTold) {
  const StoreServer server;
  Rank zero(server, 0);
  Rank one(server, 1);
  zero.arrive();
  one.arrive();
  zero.inner->complete(0, 2);
  one.inner->refuses = true;
  zero.arrive();
  EXPECT_TRUE(becomes([&] { return one.said() == "raises: a slot could not be filled: the inner refuses"; }));
  EXPECT_EQ(zero.said(), "");
  EXPECT_THROW(one.arrive(), std::runtime_error);
}

TEST_F(ControlThreadsTest, aStoreThatIsGoneIsToldByEachThatNotices) {
  auto server = std::make_unique<StoreServer>();
  Rank zero(*server, 0);
  server.reset();
  EXPECT_TRUE(becomes([&] { return !zero.said().empty(); }));
  EXPECT_NE(zero.said().find("control messages are carried no more"), std::string::npos);
}

TEST_F(ControlThreadsTest, stoppingIsNoFailure) {
  const StoreServer server;
  Rank zero(server, 0);
  zero.threads.stop();
  zero.threads.stop();
  EXPECT_EQ(zero.said(), "");
}

TEST_F(ControlThreadsTest, aForkedChildWaitsForNoThreadOfItsParents) {
  const StoreServer server;
  Rank zero(server, 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    zero.threads.stop();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(zero.said(), "");
}

}  // namespace
}  // namespace straggler
