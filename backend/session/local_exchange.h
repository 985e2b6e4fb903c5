// LocalExchange: how the root's own monitor reaches the root's collector, in the same process.
//
// Thread safety: one sender, one receiver. Bounded: a collector that is blocked costs messages, not memory.
#pragma once

#include <deque>
#include <exception>
#include <utility>

#include "backend/base/mutex.h"
#include "backend/exchange/exchange.h"

namespace straggler {

class LocalExchange final : public Exchange {
 public:
  static constexpr std::size_t kMaxFrames = 256;

  Sent send(std::span<const std::uint8_t> bytes) noexcept override {
    const MutexLock lock(mutex_);
    try {
      if (frames_.size() < kMaxFrames) {
        frames_.emplace_back(bytes.begin(), bytes.end());
        return Sent::kYes;
      }
    } catch (const std::exception&) {  // no memory
    }
    return Sent::kLater;
  }
  bool rootLeaving() noexcept override { return false; }
  std::string lastError() const override { return {}; }

  std::optional<std::vector<std::uint8_t>> receive() noexcept override {
    const MutexLock lock(mutex_);
    if (frames_.empty()) {
      return std::nullopt;
    }
    auto bytes = std::move(frames_.front());
    frames_.pop_front();
    return bytes;
  }
  void announceLeaving() noexcept override {}

  void publish(std::span<const std::uint8_t> bytes, Publication /*publication*/) noexcept override {
    if (bytes.size() > kMaxPublished) {
      return;
    }
    const MutexLock lock(mutex_);
    try {
      published_.emplace(bytes.begin(), bytes.end());
    } catch (const std::exception&) {  // no memory: the next one, perhaps
      published_.reset();
    }
  }
  std::optional<std::vector<std::uint8_t>> published() noexcept override {
    const MutexLock lock(mutex_);
    return std::exchange(published_, std::nullopt);
  }

 private:
  Mutex mutex_;
  std::optional<std::vector<std::uint8_t>> published_ GUARDED_BY(mutex_);
  std::deque<std::vector<std::uint8_t>> frames_ GUARDED_BY(mutex_);
};

}  // namespace straggler
