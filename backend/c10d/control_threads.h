// ControlThreads: the threads of one group's mitigation, of which none takes Python's lock.
//
//   watch         every rank            looks at what waits, tells the coordinator, writes down what was filled
//   proxy         every rank            hears what is asked of the rank, and fills its slots
//   coordinator   group rank 0          hears all ranks, and asks those that are late
//
// A forked child has none of them, and its copy of this ends without waiting for any.
//
// A thread that dies, and a channel that is gone, end the mitigation of this rank: one line, and it is exact from then on.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend/base/process_bound.h"
#include "backend/c10d/carrier.h"
#include "backend/c10d/control_channel.h"

namespace straggler {

class ControlThreads {
 public:
  struct Options {
    int ranks = 1;
    int quorum = 1;
    MitigationMode mode = MitigationMode::kCarry;
    bool coordinates = false;
  };
  struct Hooks {
    std::function<void(const std::string& reason)> failed;                         // by the thread that finds out
    std::function<void(const std::vector<Participation>& participations)> filled;  // by the watch thread
    // By the watch thread: a slot could not be filled or taken, and the main thread gets the error.
    std::function<void(const std::string& reason)> raises;
    std::function<void()> looked;  // by the watch thread, after each look
  };

  ControlThreads(std::shared_ptr<Carrier> carrier, std::unique_ptr<ControlChannel> channel, Options options,
                 Hooks hooks);
  ~ControlThreads();
  ControlThreads(const ControlThreads&) = delete;
  ControlThreads& operator=(const ControlThreads&) = delete;

  // Once whoever the hooks belong to is complete.
  void start();
  // Ends them, and waits for it.
  void stop() noexcept;

  std::uint64_t messages() const { return messages_; }

 private:
  void watch();
  void proxy();
  void coordinate();
  void tell(const Engine::Tell& told);
  void run(const char* thread, void (ControlThreads::*loop)());

  const ProcessBound origin_;
  const std::shared_ptr<Carrier> carrier_;
  const std::unique_ptr<ControlChannel> channel_;
  const Options options_;
  const Hooks hooks_;
  const std::unique_ptr<ControlInbox> inbox_;
  const std::unique_ptr<ControlInbox> coordinatorInbox_;  // null: another rank's
  std::atomic<std::uint64_t> messages_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace straggler
