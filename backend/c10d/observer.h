// Observer: what all wrapped backends of a process write into. It knows the ways in which a Work tells that it is done
// and a rank that it goes on, and turns them into records.
//
// Contract: every function is noexcept and takes no lock but the recorder's short one. What cannot be recorded is
// counted by the recorder; the training job never notices.
//
// Thread safety: every function may be called from any thread. poll() belongs to the session's monitor.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "backend/base/mutex.h"
#include "backend/c10d/device_timer.h"
#include "backend/c10d/forwarding_backend.h"
#include "backend/c10d/release_probe.h"
#include "backend/observe/recorder.h"
#include "backend/session/session.h"

namespace straggler {

class Observer final : public Poller, public std::enable_shared_from_this<Observer> {
 public:
  explicit Observer(std::shared_ptr<Recorder> recorder) : recorder_(std::move(recorder)) {}

  // Before the call. Gives kNoTicket for what is captured into a device graph.
  Ticket enter(GroupId group, const Call& call) noexcept;
  // The inner call threw.
  void failed(Ticket ticket) noexcept { recorder_->failed(ticket); }
  // The inner call returned `work`, which may be null. Completion and release are seen from here on, as far as they can
  // be; returns what the caller of the collective gets.
  c10::intrusive_ptr<c10d::Work> issued(Ticket ticket, const Call& call, c10::intrusive_ptr<c10d::Work> work) noexcept;

  // The caller's wait() for an asynchronous Work begins and ends.
  void waiting(Ticket ticket, c10::Device device) noexcept;
  void released(Ticket ticket, c10::Device device) noexcept;
  // The Work went away; nobody waited for it, or somebody did long before.
  void abandoned(Ticket ticket) noexcept;

  bool poll() noexcept override;

 private:
  void watchCompletion(Ticket ticket, const c10::intrusive_ptr<c10d::Work>& work) noexcept;
  bool watchByFuture(Ticket ticket, c10d::Work& work) noexcept;
  bool onTrainingThread() noexcept;

  struct Polled {
    Ticket ticket;
    c10::intrusive_ptr<c10d::Work> work;
  };

  SteadyClock clock_;
  std::shared_ptr<Recorder> recorder_;
  DeviceTimer deviceTimer_;
  ReleaseProbe releaseProbe_;
  std::atomic<std::thread::id> trainingThread_{};
  std::atomic<bool> worksHaveFutures_{true};

  Mutex mutex_;
  std::deque<Polled> polled_ GUARDED_BY(mutex_);  // Works without a usable Future; each is let go once it is done
};

}  // namespace straggler
