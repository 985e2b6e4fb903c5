#include "backend/c10d/faulty_channel.h"

#include <utility>

#include "backend/c10d/mitigation.h"

namespace straggler {
namespace {

constexpr Duration kPeriod = std::chrono::milliseconds(1);

}  // namespace

FaultyChannel::FaultyChannel(std::unique_ptr<ControlChannel> channel, const ControlFaults& faults, int rank)
    : channel_(std::move(channel)),
      probability_(faults.probability),
      delay_(std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(faults.delayMs))),
      random_(faults.seed * 1'000'003 + static_cast<std::uint64_t>(rank)),
      thread_([this] { deliverLate(); }) {}

FaultyChannel::~FaultyChannel() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notifyAll();
  }
  thread_.join();
}

void FaultyChannel::sendToCoordinator(const std::vector<std::uint8_t>& bytes) noexcept {
  send([this, bytes] { channel_->sendToCoordinator(bytes); });
}

void FaultyChannel::sendToRank(int rank, const std::vector<std::uint8_t>& bytes) noexcept {
  send([this, rank, bytes] { channel_->sendToRank(rank, bytes); });
}

void FaultyChannel::send(const std::function<void()>& message) {
  int fate = 3;  // it arrives
  {
    const MutexLock lock(mutex_);
    if (std::uniform_real_distribution<double>()(random_) < probability_) {
      fate = std::uniform_int_distribution<int>(0, 2)(random_);
    }
    if (fate == 1) {
      late_.emplace(SteadyClock().now() + delay_, message);
    }
  }
  if (fate >= 2) {
    message();
  }
  if (fate == 2) {
    message();
  }
}

void FaultyChannel::deliverLate() {
  while (true) {
    std::function<void()> message;
    {
      const MutexLock lock(mutex_);
      changed_.waitFor(mutex_, kPeriod, [this]() REQUIRES(mutex_) { return stopped_; });
      if (stopped_) {
        return;
      }
      if (late_.empty() || late_.begin()->first > SteadyClock().now()) {
        continue;
      }
      message = late_.extract(late_.begin()).mapped();
    }
    message();
  }
}

}  // namespace straggler
