// The channels of control messages, over a real store.
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include "backend/c10d/faulty_channel.h"
#include "backend/c10d/mitigation.h"
#include "backend/c10d/store_channel.h"
#include "tests/fakes/store_server.h"
#include "tests/fakes/temporary_folder.h"

namespace straggler {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Keeps what is sent.
class KeepingChannel final : public ControlChannel {
 public:
  explicit KeepingChannel(std::shared_ptr<std::vector<Bytes>> kept) : kept_(std::move(kept)) {}
  std::unique_ptr<ControlInbox> inboxOfRank() override { return nullptr; }
  std::unique_ptr<ControlInbox> inboxOfCoordinator() override { return nullptr; }
  void sendToCoordinator(const Bytes& bytes) noexcept override { keep(bytes); }
  void sendToRank(int /*rank*/, const Bytes& bytes) noexcept override { keep(bytes); }
  std::string gone() const override { return ""; }

 private:
  void keep(const Bytes& bytes) {
    const MutexLock lock(mutex_);
    kept_->push_back(bytes);
  }

  Mutex mutex_;
  std::shared_ptr<std::vector<Bytes>> kept_;
};

TEST(StoreChannel, messagesReachTheCoordinatorAndTheRankTheyAreFor) {
  const StoreServer server;
  StoreChannel zero(server.client(), "n", 0);
  StoreChannel one(server.client(), "n", 1);
  const auto coordinator = zero.inboxOfCoordinator();
  const auto rank = one.inboxOfRank();
  one.sendToCoordinator({1, 2});
  EXPECT_EQ(coordinator->receive(), (Bytes{1, 2}));
  zero.sendToRank(1, {3});
  zero.sendToRank(0, {4});
  EXPECT_EQ(rank->receive(), Bytes{3});
  EXPECT_EQ(zero.inboxOfRank()->receive(), Bytes{4});
}

TEST(StoreChannel, groupsWithAnotherNonceDoNotMeet) {
  const StoreServer server;
  StoreChannel first(server.client(), "a", 0);
  StoreChannel second(server.client(), "b", 0);
  first.sendToCoordinator({1});
  second.sendToCoordinator({2});
  EXPECT_EQ(second.inboxOfCoordinator()->receive(), Bytes{2});
}

TEST(StoreChannel, closingEndsAWait) {
  const StoreServer server;
  StoreChannel channel(server.client(), "n", 0);
  const auto inbox = channel.inboxOfRank();
  std::thread waits([&] { EXPECT_EQ(inbox->receive(), std::nullopt); });
  inbox->close();
  waits.join();
  EXPECT_EQ(channel.gone(), "");
}

TEST(StoreChannel, aStoreThatIsGoneEndsTheWaitAndIsSaid) {
  auto server = std::make_unique<StoreServer>();
  StoreChannel channel(server->client(), "n", 0);
  const auto inbox = channel.inboxOfRank();
  std::thread waits([&] { EXPECT_EQ(inbox->receive(), std::nullopt); });
  server.reset();
  waits.join();
  EXPECT_NE(channel.gone(), "");
  channel.sendToCoordinator({1});
  inbox->close();
}

TEST(StoreChannel, aStoreWithoutQueuesIsRefused) {
  const TemporaryFolder folder;
  c10d::FileStore store(folder / "store", 1);
  EXPECT_THROW(StoreChannel::check(store), std::exception);
  const StoreServer server;
  EXPECT_NO_THROW(StoreChannel::check(*server.client()));
}

TEST(FaultyChannel, messagesAreLostRepeatedAndLate) {
  const auto kept = std::make_shared<std::vector<Bytes>>();
  {
    FaultyChannel channel(std::make_unique<KeepingChannel>(kept), {1.0, 1.0, 7}, 0);
    for (int i = 0; i < 300; ++i) {
      channel.sendToCoordinator({1});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  // A third each is lost, late and twice there.
  EXPECT_GT(kept->size(), 220U);
  EXPECT_LT(kept->size(), 380U);
}

TEST(FaultyChannel, withoutFaultsEverythingArrivesOnce) {
  const auto kept = std::make_shared<std::vector<Bytes>>();
  FaultyChannel channel(std::make_unique<KeepingChannel>(kept), {0.0, 1.0, 7}, 0);
  for (int i = 0; i < 300; ++i) {
    channel.sendToRank(2, {1});
  }
  EXPECT_EQ(kept->size(), 300U);
}

}  // namespace
}  // namespace straggler
