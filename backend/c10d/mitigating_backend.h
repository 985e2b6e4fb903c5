// MitigatingBackend: the decorator under which a late rank does not hold up its group. It stands between the observing wrapper
// and the inner backend, says what each call is, and lets the Carrier issue it, or take what was filled in its place.
//
// What may be filled is decided here, and fails closed. A bucket is storage that backwards reduce again and again
// (BucketNames), and only as long as the buckets found hold exactly as many elements as the parameters that
// DistributedDataParallel has registered: anything else that looks like one makes the sum wrong, and nothing is filled.
//
// What is not supported is not armed, and said: another device than the CPU, point to point, comm hooks, and so on
// (MITIGATION.md lists all).
//
// Lines for people: whether it is armed, and why not, from group rank 0; what is one rank's own, from that rank.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "backend/base/mutex.h"
#include "backend/c10d/carrier.h"
#include "backend/c10d/control_threads.h"
#include "backend/c10d/forwarding_backend.h"
#include "backend/exchange/messages.h"
#include "backend/mitigate/bucket_names.h"
#include "backend/report/record_file.h"

namespace straggler {

class MitigatingBackend final : public ForwardingBackend {
 public:
  struct Options {
    Engine::Options engine;
    int quorum = 1;
    int globalRank = 0;
    std::string directory;  // for the record of what was filled; empty: none
    std::chrono::milliseconds timeout = std::chrono::minutes(30);
  };

  // Throws SettingsError if the folder cannot be written.
  MitigatingBackend(BackendPtr inner, std::unique_ptr<ControlChannel> channel, const Options& options);
  ~MitigatingBackend() override;

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  void setTimeout(std::chrono::milliseconds timeout) override;
  void abort() override;
  void shutdown() override;

  // ---- What Python knows and c10d does not ----

  // So many elements of gradients are reduced by DistributedDataParallel; negative: no more.
  void expectGradients(std::int64_t elements);
  // By how much the gradients of the backwards to come are scaled up.
  void setGradientScale(double scale) { scale_ = scale; }
  // Ends mitigation for good, on a call that every rank makes at the same place.
  void standDown(const std::string& reason);
  // A collective of another group of this process.
  void exactElsewhere(const std::string& what);
  void flush();
  void restore(BucketId bucket, const at::Tensor& owed) { carrier_->restore(bucket, owed); }

  // ---- What became of it ----

  enum class State : std::uint8_t {
    kNotYet,
    kArmed,
    kAside,  // for now: nobody would gain
    kAlone,  // for now: nothing is filled for this rank
    kOff,    // for good
  };
  struct Status {
    State state = State::kNotYet;
    std::string text;  // for what it is armed, or why not
    std::map<BucketId, BucketLedger> ledger;
    std::map<BucketId, std::uint64_t> elements;
    std::uint64_t filledByProxy = 0;
    std::uint64_t waitedFor = 0;
    std::uint64_t messages = 0;
    Duration saved{};
    std::optional<Duration> grace;
  };
  Status status() const;
  MitigationSummary summary() const;
  MitigationMode mode() const { return options_.engine.mode; }
  int globalRank() const { return options_.globalRank; }
  std::map<BucketId, at::Tensor> residuals() const { return carrier_->residuals(); }

 protected:
  WorkPtr call(const Call& call, c10::function_ref<WorkPtr()> issue) override;
  BackendPtr wrap(BackendPtr made, const std::vector<int>& ranks) override;

 private:
  SlotOperation describe(const Tensors& tensors, const c10d::AllreduceOptions& options);
  void nameBucket(SlotOperation& operation, const at::Tensor& tensor, int graphTask);
  void arm() REQUIRES(mutex_);
  // An operation of a backward that reduces no gradients; outside of a backward it is none of this one's business.
  void seeOther(const std::string& operation);
  void describeState(Status& status, const std::string& leftAlone, const std::optional<std::string>& exact) const
      REQUIRES(mutex_);
  std::string sentence(const Status& status) const;
  void failed(const std::string& reason);
  void record(const std::vector<Participation>& participations);
  void sayNews();
  void sayBias();
  void sayFailure();

  const Options options_;
  const std::shared_ptr<Carrier> carrier_;
  std::atomic<double> scale_{1};

  mutable Mutex mutex_;
  BucketNames names_ GUARDED_BY(mutex_);
  std::int64_t expected_ GUARDED_BY(mutex_) = 0;
  std::string reason_ GUARDED_BY(mutex_);  // why it ended for good
  std::map<BucketId, std::uint64_t> elements_ GUARDED_BY(mutex_);
  std::optional<BucketNames::Named> armedFor_ GUARDED_BY(mutex_);

  std::atomic<bool> failed_{false};  // and not said yet
  std::string said_;                 // this and the next four: the watching thread's
  State saidState_ = State::kNotYet;
  bool saidBias_ = false;
  Instant lastSaid_{};
  std::unique_ptr<RecordFile> record_;       // until it has ended
  std::unique_ptr<ControlThreads> threads_;  // last: they use all of the above
};

}  // namespace straggler
