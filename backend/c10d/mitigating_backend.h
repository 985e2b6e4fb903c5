// MitigatingBackend: the carrier of a group's mitigation. It stands between the observing wrapper and the inner backend, and
// carries out what the engine orders: it issues, fills slots for a main thread that is late, and hands logged results out.
//
// Slot lock: one mutex a group guards the engine, and is held while a collective is issued to the inner backend. That is the
// one place in which the inner is called with a lock held, and on purpose: the order of the slots is the order in which
// the inner sees them, and only the lock makes the two one. The inner's issuing calls do not wait for other ranks.
//
// Threads, of each group that is armed (see THREADS.md): one that looks at what waits and tells the coordinator, one that
// hears requests, and on group rank 0 the coordinator's. None of them takes Python's lock.
//
// A logged result reaches the main thread as a Work of its own, chained to the inner's: the autograd thread does not wait.
//
// What is not supported is not armed, and said: another device than the CPU, a store without queues, point to point.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <thread>

#include "backend/base/mutex.h"
#include "backend/c10d/control_channel.h"
#include "backend/c10d/forwarding_backend.h"
#include "backend/c10d/residuals.h"
#include "backend/mitigate/bucket_names.h"
#include "backend/mitigate/coordinator.h"
#include "backend/mitigate/engine.h"

namespace straggler {

class MitigatingBackend final : public ForwardingBackend {
 public:
  struct Options {
    Engine::Options engine;
    int quorum = 1;
  };

  MitigatingBackend(BackendPtr inner, std::unique_ptr<ControlChannel> channel, Options options);
  ~MitigatingBackend() override;

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  void abort() override;
  void shutdown() override;

  // ---- What became of it ----
  BucketLedger ledger() const;
  std::uint64_t filledByProxy() const;
  std::map<BucketId, at::Tensor> residuals() const;
  // Why it does not mitigate; empty: it does.
  std::string standingDown() const;

 protected:
  WorkPtr call(const Call& call, c10::function_ref<WorkPtr()> issue) override;
  BackendPtr wrap(BackendPtr made, const std::vector<int>& ranks) override;

 private:
  struct Logged {
    at::Tensor result;
    WorkPtr work;
    std::uint32_t participants = 0;
  };
  struct Issued {
    Slot slot = 0;
    WorkPtr work;
  };
  // How a bucket, or a broadcast of a type, is made.
  struct Form {
    at::TensorOptions tensor;
    c10d::AllreduceOptions allreduce;
  };

  WorkPtr arrive(const SlotOperation& operation, at::Tensor* tensor, c10::function_ref<WorkPtr()> issue);
  WorkPtr take(const Engine::Take& order, at::Tensor& tensor) REQUIRES(mutex_);
  WorkPtr issued(Slot slot, WorkPtr work) REQUIRES(mutex_);
  void fillAll() REQUIRES(mutex_);
  void fill(const Engine::Fill& order) REQUIRES(mutex_);
  SlotOperation describe(const Tensors& tensors, const c10d::AllreduceOptions& options) REQUIRES(mutex_);
  void standDown(const std::string& reason) REQUIRES(mutex_);
  void rescale(at::Tensor& result, std::uint32_t participants) const;

  void watchLoop();
  void hearLoop();
  void coordinateLoop();
  void hear(const std::vector<std::uint8_t>& bytes);
  void stop() noexcept;

  Options options_;
  std::unique_ptr<ControlChannel> channel_;
  std::unique_ptr<ControlInbox> inbox_;
  std::unique_ptr<ControlInbox> coordinatorInbox_;  // null: another rank's

  mutable Mutex mutex_;  // the slot lock
  CondVar moved_;        // a slot was filled, or it stops
  Engine engine_ GUARDED_BY(mutex_);
  BucketNames names_ GUARDED_BY(mutex_);
  Residuals residuals_ GUARDED_BY(mutex_);
  std::map<BucketId, Form> forms_ GUARDED_BY(mutex_);
  std::map<int, at::TensorOptions> broadcasts_ GUARDED_BY(mutex_);  // by type
  std::map<Slot, Logged> log_ GUARDED_BY(mutex_);
  std::deque<Issued> issued_ GUARDED_BY(mutex_);  // and not known to be complete
  std::string reason_ GUARDED_BY(mutex_);

  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace straggler
