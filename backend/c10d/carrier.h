// Carrier: moves the tensors of one group's mitigation, as the engine orders. It issues, fills slots for a main thread that is
// late, keeps results that it has not reached, and hands them out.
//
// Slot lock: one mutex guards the engine, and is held while a collective is issued to the inner backend. That is the one place
// in which the inner is called with a lock held, and on purpose: the order of the slots is the order in which the inner
// sees them, and only the lock makes the two one. The inner's issuing calls do not wait for other ranks. Beside them, what a
// rank owes is added and taken under it, since a contribution has to hold what the ledger says.
//
// A logged result reaches the main thread as a Work of its own, chained to the inner's: the autograd thread does not wait.
//
// Lifetime: callbacks of the inner's Works share it, so it outlives the backend that it was made for.
//
// Thread safety: arrive() from the user's threads, fill orders from the proxy too; everything else from any thread.
#pragma once

#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <string>

#include <c10/util/FunctionRef.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "backend/base/mutex.h"
#include "backend/c10d/chained_work.h"
#include "backend/c10d/residuals.h"
#include "backend/mitigate/control_codec.h"
#include "backend/mitigate/engine.h"

namespace straggler {

class Carrier : public std::enable_shared_from_this<Carrier> {
 public:
  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

  // How an operation of a kind is made again.
  struct Form {
    at::TensorOptions tensor;
    c10d::AllreduceOptions allreduce;  // of a bucket
  };

  Carrier(BackendPtr inner, Engine::Options options, std::chrono::milliseconds timeout);

  // ---- The user's threads ----

  // The main thread's next operation. `tensor`: where its result goes; `form`: of what may be filled, else null. Gives the
  // inner's Work, or one that is chained to it.
  WorkPtr arrive(const SlotOperation& operation, const std::string& what, at::Tensor* tensor, const Form* form,
                 c10::function_ref<WorkPtr()> issue);

  // ---- Threads of ours ----

  void hear(const ControlMessage& message);
  // What there is to tell, and when to look again.
  struct Look {
    Engine::Tell tell;
    Duration again;
    std::vector<Participation> participations;
    std::string failure;  // why nothing can be filled any more; told once
  };
  Look look();
  // Waits until something new may have to be told, for at most `patience`.
  void waitForNews(Duration patience);

  // ---- State ----

  // Nothing is filled any more; whoever waits for a slot of ours is let go.
  void stop() noexcept;
  template <class F>
  auto with(F&& f) const {
    const MutexLock lock(mutex_);
    return f(engine_);
  }
  template <class F>
  auto with(F&& f) {
    const MutexLock lock(mutex_);
    return f(engine_);
  }
  void setTimeout(std::chrono::milliseconds timeout);
  void restore(BucketId bucket, const at::Tensor& owed);
  // What the rank owes at the step in which its main thread is.
  std::map<BucketId, at::Tensor> residuals() const;

 private:
  struct Logged {
    at::Tensor result;
    WorkPtr work;
    std::exception_ptr error;  // there is no Work: the inner refused
    at::Tensor carried;        // what the rank owed and contributed, defined if anything
    BucketId bucket = 0;
  };
  struct Issued {
    Slot slot = 0;
    WorkPtr work;
  };
  // Stamps of the inner's completions, written by its threads.
  struct Completions {
    Mutex mutex;
    std::map<Slot, Instant> at GUARDED_BY(mutex);
  };
  // Of a slot that is reserved and not filled yet: what the main thread has got instead of a result.
  struct Promised {
    c10::intrusive_ptr<ChainedWork> work;
    at::Tensor tensor;
    Instant deadline;
  };
  // What is left to do once the lock is let go, since chaining may run the rest at once.
  struct Outcome {
    WorkPtr work;
    Slot slot = 0;
    at::Tensor logged{};  // defined if the slot was filled by the proxy
    bool promised = false;
  };

  Outcome take(const Engine::Take& order, const SlotOperation& operation, const at::Tensor& tensor) REQUIRES(mutex_);
  Outcome step(const Engine::Arrival& arrival, const SlotOperation& operation, at::Tensor* tensor,
               c10::function_ref<WorkPtr()> issue) REQUIRES(mutex_);
  void issued(Slot slot, const WorkPtr& work) REQUIRES(mutex_);
  void seeCompletions() REQUIRES(mutex_);
  void announceNews() REQUIRES(mutex_);
  // Hands out what was promised and is there now.
  void keepPromises();
  void breakPromises(Instant now) noexcept;
  void failed(const std::string& reason) REQUIRES(mutex_);
  void fillAll() REQUIRES(mutex_);
  void fill(const Engine::Fill& order) REQUIRES(mutex_);
  void waitForProxy(Instant deadline);
  WorkPtr scaledUp(WorkPtr work, Slot slot, const at::Tensor& tensor);
  void rescale(at::Tensor& result, std::uint32_t participants) const;

  const BackendPtr inner_;
  const MitigationMode mode_;
  const std::shared_ptr<Completions> completions_ = std::make_shared<Completions>();

  mutable Mutex mutex_;  // the slot lock
  CondVar moved_;        // a slot was filled, or it stops
  CondVar news_;
  Engine engine_ GUARDED_BY(mutex_);
  Residuals residuals_ GUARDED_BY(mutex_);
  std::map<BucketId, Form> buckets_ GUARDED_BY(mutex_);
  std::map<int, Form> broadcasts_ GUARDED_BY(mutex_);  // by type
  std::map<Slot, Logged> log_ GUARDED_BY(mutex_);
  std::map<Slot, Promised> promised_ GUARDED_BY(mutex_);
  std::deque<Issued> issued_ GUARDED_BY(mutex_);  // and not known to be complete
  std::chrono::milliseconds timeout_ GUARDED_BY(mutex_);
  std::string failure_ GUARDED_BY(mutex_);  // not told yet
  bool stopped_ GUARDED_BY(mutex_) = false;
  bool hasNews_ GUARDED_BY(mutex_) = false;
};

}  // namespace straggler
