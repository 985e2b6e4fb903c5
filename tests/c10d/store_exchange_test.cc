// StoreExchange over each of torch's own stores, with ranks as threads.
#include "backend/c10d/store_exchange.h"

#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace straggler {
namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;
using Frame = std::vector<std::uint8_t>;
using std::chrono::milliseconds;
using SteadyTime = std::chrono::steady_clock;

constexpr milliseconds kUsersTimeout{77777};
constexpr milliseconds kBound{6000};
constexpr int kFramesPerRank = 8;  // that may wait in the queue

// ---- Stores ----

StorePtr hashStore() { return c10::make_intrusive<c10d::HashStore>(); }

StorePtr tcpStore(bool libuv) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  options.useLibUV = libuv;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}
StorePtr libuvStore() { return tcpStore(true); }
StorePtr legacyStore() { return tcpStore(false); }

// In a file that goes with the store: one worker, so the last reference removes it.
StorePtr fileStore() {
  std::string path = testing::TempDir() + "straggler_store_XXXXXX";
  close(mkstemp(path.data()));
  return c10::make_intrusive<c10d::FileStore>(path, 1);
}

struct Kind {
  const char* name;
  StorePtr (*make)();
};
constexpr std::array<Kind, 2> kWithQueues = {{{"HashStore", hashStore}, {"TCPStore", libuvStore}}};
constexpr std::array<Kind, 2> kWithoutQueues = {{{"FileStore", fileStore}, {"legacy TCPStore", legacyStore}}};
constexpr std::array<Kind, 4> kAll = {kWithQueues[0], kWithQueues[1], kWithoutQueues[0], kWithoutQueues[1]};

// As a group's store is: below two prefixes.
StorePtr prefixed(const StorePtr& store) {
  return c10::make_intrusive<c10d::PrefixStore>("group", c10::make_intrusive<c10d::PrefixStore>("cpu", store));
}

// ---- Frames ----

Frame frame(int rank, int number) {
  return {static_cast<std::uint8_t>(rank), static_cast<std::uint8_t>(number / 256),
          static_cast<std::uint8_t>(number % 256)};
}
int rankOf(const Frame& bytes) { return bytes[0]; }
int numberOf(const Frame& bytes) { return bytes[1] * 256 + bytes[2]; }

// Offers the frame until it is taken.
void sendPatiently(StoreExchange& exchange, const Frame& bytes) {
  while (exchange.send(bytes) == Exchange::Sent::kLater) {
    std::this_thread::sleep_for(milliseconds(1));
  }
}

// What arrives until `count` frames have, or `patience` ends.
std::vector<Frame> receive(StoreExchange& exchange, std::size_t count, milliseconds patience) {
  std::vector<Frame> frames;
  const auto end = SteadyTime::now() + patience;
  while (frames.size() < count && SteadyTime::now() < end) {
    if (auto bytes = exchange.receive()) {
      frames.push_back(std::move(*bytes));
    } else {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  return frames;
}

milliseconds durationOf(const std::function<void()>& work) {
  const auto begin = SteadyTime::now();
  work();
  return std::chrono::duration_cast<milliseconds>(SteadyTime::now() - begin);
}

// ---- Frames arrive ----

TEST(StoreExchange, framesOfEveryRankArriveOnceAndInOrder) {
  constexpr int kFrames = 200;
  const std::vector<int> ranks = {0, 1, 2, 3};
  for (const auto& kind : kAll) {
    SCOPED_TRACE(kind.name);
    const StorePtr store = prefixed(kind.make());
    StoreExchange root(store, 0, ranks);
    root.ending();  // no turns
    std::vector<std::thread> senders;
    for (const int rank : {1, 2, 3}) {
      senders.emplace_back([&store, &ranks, rank] {
        StoreExchange exchange(store, rank, ranks);
        exchange.ending();
        for (int number = 0; number < kFrames; ++number) {
          sendPatiently(exchange, frame(rank, number));
        }
      });
    }
    const auto frames = receive(root, 3 * kFrames, milliseconds(20000));
    for (auto& sender : senders) {
      sender.join();
    }
    EXPECT_EQ(frames.size(), 3U * kFrames);
    std::map<int, int> next;
    for (const auto& bytes : frames) {
      EXPECT_EQ(numberOf(bytes), next[rankOf(bytes)]++);
    }
    EXPECT_FALSE(root.receive());
  }
}

TEST(StoreExchange, withoutQueuesARankOffersOneFrameATurn) {
  const std::vector<int> ranks = {0, 1, 2};
  for (const auto& kind : kWithoutQueues) {
    SCOPED_TRACE(kind.name);
    const StorePtr store = prefixed(kind.make());
    StoreExchange root(store, 0, ranks);
    StoreExchange one(store, 1, ranks);
    StoreExchange two(store, 2, ranks);
    EXPECT_EQ(one.send(frame(1, 0)), Exchange::Sent::kYes);
    EXPECT_EQ(one.send(frame(1, 1)), Exchange::Sent::kLater);
    EXPECT_EQ(two.send(frame(2, 0)), Exchange::Sent::kYes);
    EXPECT_EQ(receive(root, 3, milliseconds(300)), (std::vector<Frame>{frame(1, 0), frame(2, 0)}));
    const auto turn = durationOf([&] { sendPatiently(one, frame(1, 1)); });
    EXPECT_LE(turn, milliseconds(900)) << "a last frame has a second";
    EXPECT_EQ(receive(root, 2, milliseconds(600)), std::vector<Frame>{frame(1, 1)});
  }
}

// A rank's last frames wait for no turn, though one has just been taken; the root's look for none either.
TEST(StoreExchange, withoutQueuesTheEndWaitsForNoTurn) {
  constexpr int kLastFrames = 5;
  for (const auto& kind : kWithoutQueues) {
    SCOPED_TRACE(kind.name);
    const StorePtr store = prefixed(kind.make());
    StoreExchange root(store, 0, {0, 1});
    StoreExchange one(store, 1, {0, 1});
    EXPECT_EQ(one.send(frame(1, 0)), Exchange::Sent::kYes);
    EXPECT_EQ(receive(root, 1, milliseconds(300)).size(), 1U);
    EXPECT_FALSE(root.receive());
    one.ending();
    root.ending();
    std::vector<Frame> last;
    for (int number = 1; number <= kLastFrames; ++number) {
      last.push_back(frame(1, number));
      EXPECT_EQ(one.send(last.back()), Exchange::Sent::kYes);
    }
    std::vector<Frame> received;
    EXPECT_LE(durationOf([&] { received = receive(root, kLastFrames, milliseconds(1000)); }), milliseconds(100));
    EXPECT_EQ(received, last);
  }
}

// Nothing is written over: a root that stood still for longer than a turn gets every frame.
TEST(StoreExchange, withoutQueuesARootThatIsBusyLosesNoFrame) {
  const StorePtr store = fileStore();
  StoreExchange root(store, 0, {0, 1});
  StoreExchange one(store, 1, {0, 1});
  std::vector<Frame> sent;
  for (int number = 0; number < 3; ++number) {
    sent.push_back(frame(1, number));
    sendPatiently(one, sent.back());
  }
  EXPECT_EQ(receive(root, 3, milliseconds(300)), sent);
}

// The same bytes twice are two frames.
TEST(StoreExchange, withoutQueuesAFrameLikeTheLastIsSeen) {
  const StorePtr store = legacyStore();
  StoreExchange root(store, 0, {0, 1});
  StoreExchange one(store, 1, {0, 1});
  std::thread sender([&one] {
    for (int turn = 0; turn < 4; ++turn) {
      sendPatiently(one, frame(1, 0));
    }
  });
  EXPECT_EQ(receive(root, 4, milliseconds(5000)), (std::vector<Frame>(4, frame(1, 0))));
  sender.join();
}

TEST(StoreExchange, whatWaitsIsBoundedWhenTheRootDoesNotListen) {
  const std::vector<int> ranks = {0, 1};
  for (const auto& kind : kAll) {
    SCOPED_TRACE(kind.name);
    const StorePtr store = kind.make();
    StoreExchange root(store, 0, ranks);
    StoreExchange one(store, 1, ranks);
    one.ending();  // no turns
    root.ending();
    int sent = 0;
    while (sent < 1000 && one.send(frame(1, sent)) == Exchange::Sent::kYes) {
      ++sent;
    }
    EXPECT_GE(sent, kFramesPerRank);
    EXPECT_LE(sent, kFramesPerRank * 2 + 1);
    EXPECT_EQ(one.send(frame(1, sent)), Exchange::Sent::kLater);
    const auto waiting = receive(root, 1000, milliseconds(200));
    EXPECT_EQ(static_cast<int>(waiting.size()), sent);
    EXPECT_EQ(one.send(frame(1, sent)), Exchange::Sent::kYes);
    EXPECT_EQ(receive(root, 1, milliseconds(200)), std::vector<Frame>{frame(1, sent)});
  }
}

TEST(StoreExchange, theNumberOfKeysStaysBounded) {
  const std::vector<int> ranks = {0, 1};
  for (const auto& kind : kAll) {
    SCOPED_TRACE(kind.name);
    const StorePtr store = kind.make();
    const auto before = store->getNumKeys();  // a FileStore has one of its own
    StoreExchange root(store, 0, ranks);
    StoreExchange one(store, 1, ranks);
    one.ending();  // no turns
    root.ending();
    for (int number = 0; number < 1000; ++number) {
      sendPatiently(one, frame(1, number));
      EXPECT_EQ(receive(root, 1, milliseconds(1000)), std::vector<Frame>{frame(1, number)});
    }
    root.announceLeaving();
    EXPECT_LE(store->getNumKeys(), before + 4);  // a round for each rank, the queue, the leave
  }
}

TEST(StoreExchange, aRankHearsThatTheRootLeaves) {
  for (const auto& kind : kAll) {
    SCOPED_TRACE(kind.name);
    const StorePtr store = kind.make();
    StoreExchange root(store, 0, {0, 1});
    StoreExchange one(store, 1, {0, 1});
    EXPECT_FALSE(one.rootLeaving());
    root.announceLeaving();
    const auto end = SteadyTime::now() + milliseconds(1000);  // a TCPStore does not acknowledge what is set
    bool heard = false;
    while (!heard && SteadyTime::now() < end) {
      heard = one.rootLeaving();
    }
    EXPECT_TRUE(heard);
  }
}

TEST(StoreExchange, twoSessionsOnOneStoreDoNotMix) {
  const std::vector<int> ranks = {0, 1};
  for (const auto& kind : kAll) {
    SCOPED_TRACE(kind.name);
    const StorePtr store = kind.make();
    {
      StoreExchange root(store, 0, ranks);
      StoreExchange one(store, 1, ranks);
      EXPECT_EQ(one.send(frame(1, 1)), Exchange::Sent::kYes);
      root.announceLeaving();
    }
    StoreExchange one(store, 1, ranks);
    EXPECT_EQ(one.send(frame(1, 2)), Exchange::Sent::kYes);
    EXPECT_FALSE(one.rootLeaving());
    StoreExchange root(store, 0, ranks);
    EXPECT_EQ(receive(root, 2, milliseconds(600)), std::vector<Frame>{frame(1, 2)});
  }
}

// ---- Many ranks ----

// Counts the calls that ask or tell the store something.
class CountingStore final : public c10d::HashStore {
 public:
  int calls() const { return calls_; }
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    ++calls_;
    HashStore::set(key, value);
  }
  std::vector<uint8_t> get(const std::string& key) override {
    ++calls_;
    return HashStore::get(key);
  }
  int64_t add(const std::string& key, int64_t value) override {
    ++calls_;
    return HashStore::add(key, value);
  }
  bool check(const std::vector<std::string>& keys) override {
    ++calls_;
    return HashStore::check(keys);
  }
  void queuePush(const std::string& key, const std::vector<uint8_t>& value) override {
    ++calls_;
    HashStore::queuePush(key, value);
  }
  std::vector<uint8_t> queuePop(const std::string& key, bool block) override {
    ++calls_;
    return HashStore::queuePop(key, block);
  }
  int64_t queueLen(const std::string& key) override {
    ++calls_;
    return HashStore::queueLen(key);
  }

 private:
  std::atomic<int> calls_{0};
};

// All ranks of a session in one thread, the root first.
std::vector<std::unique_ptr<StoreExchange>> session(const StorePtr& store, int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(rank);
  }
  std::vector<std::unique_ptr<StoreExchange>> exchanges;
  for (const int rank : ranks) {
    exchanges.push_back(std::make_unique<StoreExchange>(store, rank, ranks));
  }
  return exchanges;
}

// One turn: every rank sends a frame, asks whether the root leaves and looks for a report; the root takes all frames.
void turn(const std::vector<std::unique_ptr<StoreExchange>>& exchanges) {
  for (std::size_t rank = 1; rank < exchanges.size(); ++rank) {
    EXPECT_FALSE(exchanges[rank]->rootLeaving());
    EXPECT_EQ(exchanges[rank]->send(frame(static_cast<int>(rank), 0)), Exchange::Sent::kYes);
    exchanges[rank]->published();
  }
  std::size_t received = 0;
  while (exchanges.front()->receive()) {
    ++received;
  }
  EXPECT_EQ(received, exchanges.size() - 1);
}

TEST(StoreExchange, theCallsOnTheStoreAreAsManyPerRankHoweverManyRanks) {
  for (const int size : {4, 16, 64}) {
    SCOPED_TRACE(size);
    const auto store = c10::make_intrusive<CountingStore>();
    const auto exchanges = session(store, size);
    EXPECT_EQ(store->calls(), 2 * size);  // its round, and whether there are queues
    for (int round = 0; round < 3; ++round) {
      const int before = store->calls();
      turn(exchanges);
      // Each rank: leaving, length, push, in the first turn the report; the root: length and pop, and one length at the end.
      EXPECT_EQ(store->calls() - before, (round == 0 ? 6 : 5) * (size - 1) + 1);
    }
  }
}

TEST(StoreExchange, twoHundredRanksThatStartAtOnceAllConnect) {
  constexpr int kRanks = 200;
  const StorePtr server = libuvStore();
  std::vector<int> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(rank);
  }
  StoreExchange root(server, 0, ranks);
  std::vector<std::thread> starting;
  for (int rank = 1; rank < kRanks; ++rank) {
    starting.emplace_back([&server, &ranks, rank] {
      StoreExchange exchange(server, rank, ranks);
      sendPatiently(exchange, frame(rank, 0));
      EXPECT_EQ(exchange.lastError(), "");
    });
  }
  for (auto& rank : starting) {
    rank.join();
  }
  std::map<int, int> heard;
  for (const auto& bytes : receive(root, kRanks - 1, milliseconds(5000))) {
    ++heard[rankOf(bytes)];
  }
  EXPECT_EQ(heard.size(), static_cast<std::size_t>(kRanks - 1));
}

// ---- Reports reach every rank ----

// What the rank finds until there is something, or `patience` ends.
std::optional<Frame> published(StoreExchange& exchange, milliseconds patience) {
  const auto end = SteadyTime::now() + patience;
  auto found = exchange.published();
  while (!found && SteadyTime::now() < end) {
    std::this_thread::sleep_for(milliseconds(10));
    found = exchange.published();
  }
  return found;
}

TEST(StoreExchange, whatTheRootPublishesIsFoundOnceByEveryRank) {
  const std::vector<int> ranks = {0, 1, 2};
  for (const auto& kind : kAll) {
    SCOPED_TRACE(kind.name);
    const StorePtr store = prefixed(kind.make());
    StoreExchange root(store, 0, ranks);
    StoreExchange one(store, 1, ranks);
    StoreExchange two(store, 2, ranks);
    root.publish(frame(0, 1), Exchange::Publication::kNews);
    EXPECT_EQ(published(one, milliseconds(3000)), frame(0, 1));
    EXPECT_EQ(one.published(), std::nullopt) << "it looks once a second";
    root.publish(frame(0, 2), Exchange::Publication::kNews);
    EXPECT_EQ(published(two, milliseconds(3000)), frame(0, 2)) << "in place of the first";
    EXPECT_EQ(published(one, milliseconds(3000)), frame(0, 2));
    EXPECT_EQ(published(one, milliseconds(1200)), std::nullopt) << "nothing newer";
    EXPECT_EQ(root.lastError() + one.lastError() + two.lastError(), "");
  }
}

TEST(StoreExchange, whereNothingIsForgottenOnlyNewsIsPublished) {
  const std::vector<int> ranks = {0, 1};
  const auto figuresArrive = [&ranks](const StorePtr& store, milliseconds patience) {
    StoreExchange root(store, 0, ranks);
    StoreExchange one(store, 1, ranks);
    root.publish(frame(0, 1), Exchange::Publication::kFigures);
    return published(one, patience).has_value();
  };
  EXPECT_TRUE(figuresArrive(libuvStore(), milliseconds(10'000)));
  EXPECT_FALSE(figuresArrive(fileStore(), milliseconds(500)));
}

// ---- Beats ----

TEST(StoreExchange, aBeatIsSeenByEveryRankAtOnceAndTheNextTakesItsPlace) {
  const std::vector<int> ranks = {0, 1, 2};
  for (const auto make : {hashStore, libuvStore, legacyStore}) {
    const StorePtr store = prefixed(make());
    StoreExchange root(store, 0, ranks);
    StoreExchange one(store, 1, ranks);
    StoreExchange two(store, 2, ranks);
    EXPECT_EQ(one.lookAtBeat(), std::nullopt);
    for (int number = 0; number < 1000; ++number) {
      root.showBeat(frame(0, number));
      ASSERT_EQ(one.lookAtBeat(), frame(0, number)) << "or what is told of the root's clock is wrong";
      ASSERT_EQ(two.lookAtBeat(), frame(0, number));
    }
    EXPECT_EQ(root.lastError() + one.lastError() + two.lastError(), "");
  }
}

TEST(StoreExchange, whereNothingIsForgottenNoBeatIsShown) {
  const std::vector<int> ranks = {0, 1};
  const StorePtr store = fileStore();
  StoreExchange root(store, 0, ranks);
  StoreExchange one(store, 1, ranks);
  root.showBeat(frame(0, 1));
  EXPECT_EQ(one.lookAtBeat(), std::nullopt);
}

TEST(StoreExchange, moreThanItsBoundIsNeitherPublishedNorBelieved) {
  const StorePtr store = hashStore();
  StoreExchange root(store, 0, {0, 1});
  root.publish(Frame(Exchange::kMaxPublished + 1), Exchange::Publication::kNews);
  EXPECT_FALSE(StoreExchange(store, 1, {0, 1}).published());
  for (const auto& damaged : {Frame(), Frame(7), Frame(Exchange::kMaxPublished + 9, 1)}) {
    store->set("straggler/2/report", damaged);
    StoreExchange one(store, 1, {0, 1});
    store->set("straggler/round/1", std::vector<std::uint8_t>{'1'});
    EXPECT_FALSE(one.published());
    EXPECT_EQ(one.lastError(), "");
  }
}

// ---- The user's store ----

TEST(StoreExchange, theTimeoutOfTheUsersStoreIsLeftAlone) {
  for (const auto& kind : kAll) {
    SCOPED_TRACE(kind.name);
    const StorePtr bare = kind.make();
    const StorePtr store = prefixed(bare);
    store->setTimeout(kUsersTimeout);
    StoreExchange root(store, 0, {0, 1});
    root.receive();
    EXPECT_EQ(store->getTimeout(), kUsersTimeout);
    EXPECT_EQ(bare->getTimeout(), kUsersTimeout);
  }
}

// Stands for a store that is written in Python.
class UnknownStore final : public c10d::Store {
 public:
  c10::intrusive_ptr<c10d::Store> clone() override { return c10::make_intrusive<UnknownStore>(); }
  using Store::set;
  void set(const std::string& /*key*/, const std::vector<uint8_t>& /*value*/) override {}
  std::vector<uint8_t> get(const std::string& /*key*/) override { return {}; }
  int64_t add(const std::string& /*key*/, int64_t /*value*/) override { return 0; }
  bool deleteKey(const std::string& /*key*/) override { return false; }
  bool check(const std::vector<std::string>& /*keys*/) override { return false; }
  int64_t getNumKeys() override { return 0; }
  void wait(const std::vector<std::string>& /*keys*/) override {}
  void wait(const std::vector<std::string>& /*keys*/, const milliseconds& /*timeout*/) override {}
};

TEST(StoreExchange, aStoreOfAnotherKindIsRefusedWithAReason) {
  for (const StorePtr& store :
       {StorePtr(c10::make_intrusive<UnknownStore>()), prefixed(c10::make_intrusive<UnknownStore>())}) {
    try {
      StoreExchange exchange(store, 0, {0, 1});
      ADD_FAILURE() << "the store was taken";
    } catch (const std::exception& error) {
      EXPECT_STREQ(error.what(), "the store is not one of torch's own in C++");
    }
  }
}

// ---- The store's death ----

// A monitor's rounds end soon with kGone, and then nothing is tried again.
void expectGone(StoreExchange& exchange) {
  auto sent = Exchange::Sent::kYes;
  EXPECT_LE(durationOf([&] {
              // What was on its way when the server died may still look sent.
              for (int round = 0; round < 3 && sent != Exchange::Sent::kGone; ++round) {
                EXPECT_FALSE(exchange.rootLeaving());
                sent = exchange.send(frame(1, round));
              }
            }),
            kBound);
  EXPECT_EQ(sent, Exchange::Sent::kGone);
  const std::string text = exchange.lastError();
  EXPECT_FALSE(text.empty());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_LE(durationOf([&] {
              EXPECT_EQ(exchange.send(frame(1, 9)), Exchange::Sent::kGone);
              EXPECT_FALSE(exchange.rootLeaving());
              EXPECT_FALSE(exchange.receive());
              EXPECT_FALSE(exchange.published());
              exchange.announceLeaving();
              exchange.publish(frame(0, 9), Exchange::Publication::kNews);
            }),
            milliseconds(100));
  EXPECT_EQ(exchange.lastError(), text);
}

TEST(StoreExchange, theDeathOfTheServerIsNoticedOnce) {
  for (const bool libuv : {true, false}) {
    SCOPED_TRACE(libuv ? "libuv" : "legacy");
    StorePtr server = tcpStore(libuv);
    StoreExchange one(server, 1, {0, 1});
    EXPECT_EQ(one.lastError(), "");
    server.reset();
    expectGone(one);
  }
}

// A call on a connection that is closed has torch write a page to standard error.
TEST(StoreExchange, theDeathOfTheServerIsNoPageOfTorchs) {
  StorePtr server = libuvStore();
  StoreExchange exchange(server, 1, {0, 1});
  server.reset();
  testing::internal::CaptureStderr();
  EXPECT_FALSE(exchange.rootLeaving());
  EXPECT_EQ(exchange.send(frame(1, 0)), Exchange::Sent::kGone);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(exchange.lastError(), "its server closed the connection");
}

// torch would wait for a file of that name, and what is set would make one.
TEST(StoreExchange, aFileThatIsRemovedIsNoticedAtOnceAndNotMadeAgain) {
  for (const bool replaced : {false, true}) {
    SCOPED_TRACE(replaced ? "another in its place" : "none in its place");
    const StorePtr store = fileStore();
    const std::string path = dynamic_cast<c10d::FileStore&>(*store).getPath();
    StoreExchange root(store, 0, {0, 1});
    StoreExchange one(store, 1, {0, 1});
    EXPECT_EQ(one.send(frame(1, 0)), Exchange::Sent::kYes);
    const std::string kept = path + "_kept";  // so that its inode is not used again
    ASSERT_EQ(rename(path.c_str(), kept.c_str()), 0);
    if (replaced) {
      std::ofstream(path).flush();
    }
    EXPECT_LE(durationOf([&] {
                EXPECT_FALSE(one.rootLeaving());
                EXPECT_EQ(one.send(frame(1, 1)), Exchange::Sent::kGone);
                EXPECT_FALSE(root.receive());
                root.announceLeaving();
              }),
              milliseconds(500));
    EXPECT_EQ(one.lastError(), "its file was removed");
    EXPECT_EQ(root.lastError(), "its file was removed");
    EXPECT_EQ(std::filesystem::exists(path), replaced);
    std::filesystem::remove(kept);
    std::filesystem::remove(path);
  }
}

TEST(StoreExchange, theRootToleratesTheDeathOfTheServer) {
  StorePtr server = libuvStore();
  StoreExchange root(server, 0, {0, 1});
  server.reset();
  EXPECT_LE(durationOf([&] { EXPECT_FALSE(root.receive()); }), kBound);
  EXPECT_FALSE(root.lastError().empty());
}

}  // namespace
}  // namespace straggler
