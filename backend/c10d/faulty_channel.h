// FaultyChannel: a control channel that loses, repeats and delays messages, for trials: nothing of what mitigation promises
// depends on them.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "backend/base/clock.h"
#include "backend/base/mutex.h"
#include "backend/c10d/control_channel.h"

namespace straggler {

struct ControlFaults;

class FaultyChannel final : public ControlChannel {
 public:
  FaultyChannel(std::unique_ptr<ControlChannel> channel, const ControlFaults& faults, int rank);
  ~FaultyChannel() override;

  std::unique_ptr<ControlInbox> inboxOfRank() override { return channel_->inboxOfRank(); }
  std::unique_ptr<ControlInbox> inboxOfCoordinator() override { return channel_->inboxOfCoordinator(); }
  void sendToCoordinator(const std::vector<std::uint8_t>& bytes) noexcept override;
  void sendToRank(int rank, const std::vector<std::uint8_t>& bytes) noexcept override;
  std::string gone() const override { return channel_->gone(); }

 private:
  void send(const std::function<void()>& message);
  void deliverLate();

  const std::unique_ptr<ControlChannel> channel_;
  const double probability_;
  const Duration delay_;

  Mutex mutex_;
  CondVar changed_;
  std::mt19937_64 random_ GUARDED_BY(mutex_);
  std::multimap<Instant, std::function<void()>> late_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace straggler
