// Observer: what all wrapped backends of a process write into. It knows the ways in which a Work tells that it is done
// and a rank that it goes on, and turns them into records.
//
// Contract: every function is noexcept and takes no lock but the recorder's short one. What cannot be recorded is
// counted by the recorder; the training job never notices.
//
// Thread safety: every function may be called from any thread. poll() belongs to the session's monitor. In a forked child,
// where locks may be held by threads that do not exist, what it inherited does nothing.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "backend/base/mutex.h"
#include "backend/base/process_bound.h"
#include "backend/c10d/device_timer.h"
#include "backend/c10d/forwarding_backend.h"
#include "backend/c10d/release_probe.h"
#include "backend/observe/recorder.h"
#include "backend/session/session.h"

namespace straggler {

class Observer final : public Poller, public std::enable_shared_from_this<Observer> {
 public:
  // Works that are polled at a time. More gather only where the monitor is held up (by a disk that hangs, say), and each
  // keeps what it works on alive: their completion stays unknown.
  static constexpr std::size_t kMaxPolled = 1024;

  explicit Observer(std::shared_ptr<Recorder> recorder) : recorder_(std::move(recorder)) {}

  // Before the call. Gives kNoTicket for what is captured into a device graph.
  Ticket enter(GroupId group, const Call& call) noexcept;
  // The inner call threw.
  void failed(Ticket ticket) noexcept;
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
  void watchBackward(int graphTask, c10::Device device) noexcept;
  void backwardReturned(int graphTask, c10::Device device) noexcept;
  // Whether the Work will tell of its completion by itself; else the end of its caller's wait has to.
  bool watchCompletion(Ticket ticket, const Call& call, const c10::intrusive_ptr<c10d::Work>& work) noexcept;
  bool watchByFuture(Ticket ticket, OpKind kind, c10d::Work& work) noexcept;
  bool onTrainingThread() noexcept;

  struct Polled {
    Ticket ticket = kNoTicket;
    c10::intrusive_ptr<c10d::Work> work;
    bool onCpu = false;
  };
  // False where there is no room.
  bool pollLater(Polled polled) noexcept;
  bool isDone(const Polled& polled) noexcept;
  // No longer polls a Work of the CPU. Returns whether it was polled and not seen done.
  bool letGo(Ticket ticket) noexcept;

  ProcessBound origin_;
  SteadyClock clock_;
  std::shared_ptr<Recorder> recorder_;
  DeviceTimer deviceTimer_;
  ReleaseProbe releaseProbe_;
  std::atomic<std::thread::id> trainingThread_{};
  std::array<std::atomic<bool>, kOpKinds> withoutFuture_{};  // by kind: asking for one threw

  Mutex mutex_;
  // Works without a usable Future. Each is let go once it is done; one of the CPU also when its caller has waited or let
  // go of it, since some never say that they are done (Gloo's reduce_scatter).
  std::vector<Polled> polled_ GUARDED_BY(mutex_);
};

}  // namespace straggler
