#include "backend/c10d/store_channel.h"

#include <chrono>
#include <exception>
#include <stdexcept>
#include <utility>

namespace straggler {
namespace {

constexpr std::chrono::minutes kTimeout{30};

std::string firstLine(const char* text) {
  const std::string whole(text);
  return whole.substr(0, whole.find('\n'));
}

}  // namespace

struct StoreChannel::Link {
  c10::intrusive_ptr<c10d::Store> users;
  std::string prefix;
  int rank = 0;

  Mutex mutex;
  c10::intrusive_ptr<c10d::Store> sender GUARDED_BY(mutex);
  std::string reason GUARDED_BY(mutex);

  c10::intrusive_ptr<c10d::Store> clone() const {
    auto store = users->clone();
    store->setTimeout(kTimeout);
    return store;
  }
  void fail(const char* why) noexcept {
    const MutexLock lock(mutex);
    try {
      reason = reason.empty() ? firstLine(why) : reason;
    } catch (const std::exception&) {
      reason = "no memory";
    }
  }
  bool isGone() noexcept {
    const MutexLock lock(mutex);
    return !reason.empty();
  }
};

// An empty value ends the wait: no message is empty.
class StoreChannel::Inbox final : public ControlInbox {
 public:
  Inbox(std::shared_ptr<Link> link, std::string key)
      : link_(std::move(link)), key_(std::move(key)), store_(link_->clone()) {}

  std::optional<std::vector<std::uint8_t>> receive() override {
    while (!closed_ && !link_->isGone()) {
      try {
        auto bytes = store_->queuePop(key_, /*block=*/true);
        if (!bytes.empty()) {
          return bytes;
        }
      } catch (const c10::DistStoreError& error) {
        if (std::string(error.what()).find("imeout") == std::string::npos) {
          link_->fail(error.what());
        }
      } catch (const std::exception& error) {
        link_->fail(error.what());
      }
    }
    return std::nullopt;
  }

  void close() noexcept override {
    closed_ = true;
    try {
      const MutexLock lock(link_->mutex);
      link_->sender->queuePush(key_, {});
    } catch (const std::exception&) {  // the store is gone, and so is the wait
    }
  }

 private:
  std::shared_ptr<Link> link_;
  std::string key_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::atomic<bool> closed_{false};
};

StoreChannel::StoreChannel(c10::intrusive_ptr<c10d::Store> store, const std::string& nonce, int rank)
    : link_(std::make_shared<Link>()) {
  link_->users = std::move(store);
  link_->prefix = "straggler/mitigate/" + nonce + "/";
  link_->rank = rank;
  auto sender = link_->clone();
  const MutexLock lock(link_->mutex);
  link_->sender = std::move(sender);
}

// The legacy server says that it has queues, and then has none: only a call tells.
void StoreChannel::check(c10d::Store& store) {
  try {
    store.clone()->queueLen("straggler/mitigate/queue");
  } catch (const std::exception& error) {
    throw std::runtime_error("control messages need a store with queues, TCPStore as a rule, which this one has not (" +
                             firstLine(error.what()) + ")");
  }
}

std::unique_ptr<ControlInbox> StoreChannel::inboxOfRank() {
  return std::make_unique<Inbox>(link_, link_->prefix + "rank/" + std::to_string(link_->rank));
}

std::unique_ptr<ControlInbox> StoreChannel::inboxOfCoordinator() {
  return std::make_unique<Inbox>(link_, link_->prefix + "coordinator");
}

void StoreChannel::sendToCoordinator(const std::vector<std::uint8_t>& bytes) noexcept { send("coordinator", bytes); }

void StoreChannel::sendToRank(int rank, const std::vector<std::uint8_t>& bytes) noexcept {
  send("rank/" + std::to_string(rank), bytes);
}

void StoreChannel::send(const std::string& key, const std::vector<std::uint8_t>& bytes) noexcept {
  if (link_->isGone()) {
    return;
  }
  try {
    const MutexLock lock(link_->mutex);
    link_->sender->queuePush(link_->prefix + key, bytes);
  } catch (const std::exception& error) {
    link_->fail(error.what());
  }
}

std::string StoreChannel::gone() const {
  const MutexLock lock(link_->mutex);
  return link_->reason;
}

}  // namespace straggler
