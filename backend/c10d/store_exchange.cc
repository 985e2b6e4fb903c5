#include "backend/c10d/store_exchange.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace straggler {
namespace {

constexpr std::chrono::milliseconds kTimeout{5000};
constexpr std::uint64_t kFramesPerRank = 8;  // that may wait
constexpr std::chrono::milliseconds kReportLookPeriod{1000};
constexpr std::size_t kReportLooksPerSecond = 512;  // of all ranks together
constexpr std::size_t kCounterBytes = 8;

// What is below all prefixes.
c10d::Store& bare(c10d::Store& store) {
  auto* prefix = dynamic_cast<c10d::PrefixStore*>(&store);
  const auto underlying = prefix != nullptr ? prefix->getUnderlyingNonPrefixStore() : nullptr;
  return underlying ? *underlying : store;
}

// Only stores in C++ can be used from a thread of ours.
bool isUsable(c10d::Store& store) {
  c10d::Store& below = bare(store);
  return dynamic_cast<c10d::TCPStore*>(&below) != nullptr || dynamic_cast<c10d::FileStore*>(&below) != nullptr ||
         dynamic_cast<c10d::HashStore*>(&below) != nullptr;
}

// Every look of a rank costs the store's server an answer.
std::chrono::milliseconds reportLookPeriod(std::size_t ranks) {
  return kReportLookPeriod * (1 + ranks / kReportLooksPerSecond);
}

std::uint64_t counterOf(const std::vector<std::uint8_t>& value) {
  std::uint64_t counter = 0;
  for (std::size_t i = 0; i < kCounterBytes; ++i) {
    counter |= static_cast<std::uint64_t>(value[i]) << (8 * i);
  }
  return counter;
}

std::vector<std::uint8_t> withCounter(std::uint64_t counter, std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> value(kCounterBytes + bytes.size());
  for (std::size_t i = 0; i < kCounterBytes; ++i) {
    value[i] = static_cast<std::uint8_t>(counter >> (8 * i));
  }
  std::copy(bytes.begin(), bytes.end(), value.begin() + kCounterBytes);
  return value;
}

std::vector<std::uint8_t> bytesOf(std::span<const std::uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

StoreExchange::StoreExchange(const c10::intrusive_ptr<c10d::Store>& store, int rank, const std::vector<int>& ranks)
    : rank_(rank), ranks_(ranks) {
  if (!isUsable(*store)) {
    throw std::runtime_error("the store is not one of torch's own in C++");
  }
  store_ = watch_.watch([&] { return store->clone(); });
  // A HashStore is its own clone, so its timeout is the user's. It is memory: nothing here waits for it.
  if (&bare(*store_) != &bare(*store)) {
    store_->setTimeout(kTimeout);
  }
  const auto round = store_->add("straggler/round/" + std::to_string(rank), 1);
  prefix_ = "straggler/" + std::to_string(round) + "/";
  queues_ = probeQueues();
  forgets_ = dynamic_cast<c10d::FileStore*>(&bare(*store_)) == nullptr;
}

// A store may say that it has queues and then refuse: only trying tells.
bool StoreExchange::probeQueues() {
  try {
    store_->queueLen(key("frames"));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Whether a call on the store would fail, or has.
bool StoreExchange::isGone() noexcept {
  if (const char* reason = gone_ ? nullptr : watch_.gone()) {
    fail(reason);
  }
  return gone_;
}

void StoreExchange::fail(const char* reason) noexcept {
  gone_ = true;
  const MutexLock lock(mutex_);
  try {
    error_.assign(reason, std::strcspn(reason, "\n"));
  } catch (const std::exception&) {
    error_ = "no memory";  // short enough to need none
  }
}

std::string StoreExchange::lastError() const {
  const MutexLock lock(mutex_);
  return error_;
}

// ---- Every rank ----

Exchange::Sent StoreExchange::send(std::span<const std::uint8_t> bytes) noexcept {
  if (isGone()) {
    return Sent::kGone;
  }
  try {
    if (!queues_) {
      return sendByKey(bytes);
    }
    if (store_->queueLen(key("frames")) > static_cast<std::int64_t>(kFramesPerRank * ranks_.size())) {
      return Sent::kLater;
    }
    store_->queuePush(key("frames"), bytesOf(bytes));
    return Sent::kYes;
  } catch (const std::exception& error) {
    fail(error.what());
    return Sent::kGone;
  }
}

std::string StoreExchange::frameKey(int rank, std::uint64_t number) const {
  return key("frames/" + std::to_string(rank) + "/" + std::to_string(number));
}

Exchange::Sent StoreExchange::sendByKey(std::span<const std::uint8_t> bytes) {
  const Instant now = SteadyClock().now();
  if (!turns_.due(now) || (sent_ >= kFramesPerRank && store_->check({frameKey(rank_, sent_ - kFramesPerRank)}))) {
    return Sent::kLater;
  }
  store_->set(frameKey(rank_, sent_), bytesOf(bytes));
  ++sent_;
  turns_.taken(now);
  return Sent::kYes;
}

bool StoreExchange::rootLeaving() noexcept {
  if (isGone()) {
    return false;
  }
  try {
    return store_->check({key("leaving")});
  } catch (const std::exception& error) {
    fail(error.what());
    return false;
  }
}

std::optional<std::vector<std::uint8_t>> StoreExchange::published() noexcept {
  const Instant now = SteadyClock().now();
  if (now < nextReportLook_ || isGone()) {
    return std::nullopt;
  }
  nextReportLook_ = now + reportLookPeriod(ranks_.size());
  try {
    return newReport();
  } catch (const std::exception& error) {
    fail(error.what());
    return std::nullopt;
  }
}

std::optional<std::vector<std::uint8_t>> StoreExchange::newReport() {
  if (!store_->check({key("report")})) {
    return std::nullopt;
  }
  const auto value = store_->get(key("report"));
  if (value.size() < kCounterBytes || value.size() > kCounterBytes + kMaxPublished ||
      counterOf(value) <= publications_) {
    return std::nullopt;
  }
  publications_ = counterOf(value);
  return std::vector<std::uint8_t>(value.begin() + kCounterBytes, value.end());
}

std::optional<std::vector<std::uint8_t>> StoreExchange::lookAtBeat() noexcept {
  if (!forgets_ || isGone()) {
    return std::nullopt;
  }
  try {
    beatSeen_ = beatSeen_ || store_->check({key("beat")});
    return beatSeen_ ? std::optional(store_->get(key("beat"))) : std::nullopt;
  } catch (const std::exception& error) {
    fail(error.what());
    return std::nullopt;
  }
}

// ---- The root ----

std::optional<std::vector<std::uint8_t>> StoreExchange::receive() noexcept {
  if (isGone()) {
    return std::nullopt;
  }
  try {
    if (!queues_) {
      return receiveByKey();
    }
    return store_->queueLen(key("frames")) > 0 ? std::optional(store_->queuePop(key("frames"), false)) : std::nullopt;
  } catch (const std::exception& error) {
    fail(error.what());
    return std::nullopt;
  }
}

// One frame a call; a look is over when no rank has any left.
std::optional<std::vector<std::uint8_t>> StoreExchange::receiveByKey() {
  const Instant now = SteadyClock().now();
  if (nextRank_ == 0 && lastLook_ && now - *lastLook_ < lookPeriod_) {
    return std::nullopt;
  }
  for (; nextRank_ < ranks_.size(); ++nextRank_) {
    const int rank = ranks_[nextRank_];
    const auto name = frameKey(rank, taken_[rank]);
    if (store_->check({name})) {
      auto bytes = store_->get(name);
      store_->deleteKey(name);
      ++taken_[rank];
      return bytes;
    }
  }
  nextRank_ = 0;
  lastLook_ = now;
  return std::nullopt;
}

void StoreExchange::publish(std::span<const std::uint8_t> bytes, Publication publication) noexcept {
  if (bytes.size() > kMaxPublished || (publication == Publication::kFigures && !forgets_) || isGone()) {
    return;
  }
  try {
    store_->set(key("report"), withCounter(++publications_, bytes));
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

// A TCPStore does not answer a set(). The check comes after it over the same connection, and is answered once it is there.
void StoreExchange::showBeat(std::span<const std::uint8_t> bytes) noexcept {
  if (!forgets_ || isGone()) {
    return;
  }
  try {
    store_->set(key("beat"), bytesOf(bytes));
    store_->check({key("beat")});
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void StoreExchange::announceLeaving() noexcept {
  if (isGone()) {
    return;
  }
  try {
    store_->set(key("leaving"), std::vector<std::uint8_t>{1});
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

}  // namespace straggler
