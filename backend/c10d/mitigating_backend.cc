#include "backend/c10d/mitigating_backend.h"

#include <algorithm>
#include <utility>

#include "backend/base/format.h"
#include "backend/c10d/blocking.h"
#include "backend/c10d/process_log.h"
#include "backend/c10d/release_probe.h"
#include "backend/report/participation_records.h"

namespace straggler {
namespace {

constexpr Duration kSayPeriod = std::chrono::milliseconds(100);
constexpr std::uint64_t kBiasKnownFrom = 50;  // gradients
constexpr double kBiasShare = 0.2;            // that were dropped
constexpr Slot kKnownBy = 200;                // slots after which it should be armed: if it is not, that is said

class WatchedStorage final : public StorageWatch {
 public:
  explicit WatchedStorage(const at::Tensor& tensor) : storage_(tensor.storage().getWeakStorageImpl()) {}
  bool isAlive() const noexcept override { return !storage_.expired(); }

 private:
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
};

std::uintptr_t addressOf(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.storage().unsafeGetStorageImpl());
}

SlotOperation operationOn(SlotOperation::Kind kind, const at::Tensor& tensor) {
  SlotOperation operation;
  operation.kind = kind;
  operation.dtype = static_cast<std::int8_t>(tensor.scalar_type());
  operation.elements = static_cast<std::uint64_t>(tensor.numel());
  operation.bytes = static_cast<std::uint64_t>(tensor.numel() * tensor.element_size());
  return operation;
}

// One that its result can be written to as a whole, later.
bool isPlain(const ForwardingBackend::Tensors& tensors) {
  return tensors.size() == 1 && tensors.front().is_cpu() && tensors.front().layout() == c10::kStrided &&
         tensors.front().is_contiguous() && !tensors.front().is_complex();
}

std::string named(const char* operation, const ForwardingBackend::Tensors& tensors) {
  const std::int64_t elements = tensors.empty() || !tensors.front().defined() ? 0 : tensors.front().numel();
  return std::string(operation) + " of " + std::to_string(elements) + (elements == 1 ? " element" : " elements");
}

std::string modeName(MitigationMode mode) { return mode == MitigationMode::kCarry ? "carry" : "drop"; }

}  // namespace

MitigatingBackend::MitigatingBackend(BackendPtr inner, std::unique_ptr<ControlChannel> channel, const Options& options)
    : ForwardingBackend(inner),
      options_(options),
      carrier_(std::make_shared<Carrier>(std::move(inner), options.engine, options.timeout)) {
  carrier_->with([](Engine& engine) { engine.arm(false); });
  if (!options.directory.empty()) {
    record_ = std::make_unique<RecordFile>(
        options.directory, "participation-rank-" + std::to_string(options.globalRank) + ".jsonl",
        [](const std::string& reason) { processLog()->line(Severity::kWarning, "straggler: " + reason); });
    record_->line(participationStart(options.globalRank, getSize(), options.engine.mode, options.engine.staleness));
  }
  ControlThreads::Hooks hooks;
  hooks.failed = [this](const std::string& reason) { failed(reason); };
  hooks.filled = [this](const std::vector<Participation>& participations) { record(participations); };
  hooks.raises = [this](const std::string& reason) { standDown(reason); };
  hooks.looked = [this] { sayNews(); };
  threads_ = std::make_unique<ControlThreads>(
      carrier_, std::move(channel),
      ControlThreads::Options{getSize(), options.quorum, options.engine.mode, getRank() == 0}, std::move(hooks));
  threads_->start();
}

MitigatingBackend::~MitigatingBackend() {
  runBlocking([this] { threads_->stop(); });
}

void MitigatingBackend::setTimeout(std::chrono::milliseconds timeout) {
  carrier_->setTimeout(timeout);
  ForwardingBackend::setTimeout(timeout);
}

void MitigatingBackend::abort() {
  ForwardingBackend::abort();
  runBlocking([this] { threads_->stop(); });
}

void MitigatingBackend::shutdown() {
  runBlocking([this] { threads_->stop(); });
  // What the watching thread did not come to.
  record(carrier_->with([](Engine& engine) { return engine.takeParticipations(); }));
  if (record_) {
    record_->flush();
  }
  ForwardingBackend::shutdown();
}

// ---- Operations ----

ForwardingBackend::WorkPtr MitigatingBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const SlotOperation operation = describe(tensors, options);
  sayFailure();
  std::optional<Carrier::Form> form;
  if (operation.bucket) {
    form = Carrier::Form{tensors.front().options().requires_grad(false), options};
    form->allreduce.asyncOp = true;
  }
  return carrier_->arrive(operation, named("an all_reduce", tensors), isPlain(tensors) ? &tensors.front() : nullptr,
                          form ? &*form : nullptr, [&] { return inner()->allreduce(tensors, options); });
}

ForwardingBackend::WorkPtr MitigatingBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const bool plain = isPlain(tensors) && options.rootTensor == 0;
  seeOther("a backward makes a broadcast");
  sayFailure();
  SlotOperation operation;
  std::optional<Carrier::Form> form;
  if (plain) {
    operation = operationOn(SlotOperation::Kind::kBroadcast, tensors.front());
    operation.root = static_cast<std::int32_t>(options.rootRank);
    form = Carrier::Form{tensors.front().options().requires_grad(false), {}};
  }
  return carrier_->arrive(operation, named("a broadcast", tensors), plain ? &tensors.front() : nullptr,
                          form ? &*form : nullptr, [&] { return inner()->broadcast(tensors, options); });
}

// What is neither an allreduce nor a broadcast.
ForwardingBackend::WorkPtr MitigatingBackend::call(const Call& call, c10::function_ref<WorkPtr()> issue) {
  if (!isNumbered(call.kind) || call.kind == OpKind::kCoalesced) {
    standDown(std::string("the group is used for ") +
              (call.kind == OpKind::kCoalesced ? "coalesced operations" : "point to point") + " (" + call.method + ")");
  }
  if (!isNumbered(call.kind)) {
    return issue();
  }
  seeOther(std::string("a backward uses ") + call.method +
           ", as sharded models (FSDP, ZeRO) and tensor parallelism do: what it carries no rank can be without");
  sayFailure();
  return carrier_->arrive(SlotOperation{}, call.method, nullptr, nullptr, issue);
}

SlotOperation MitigatingBackend::describe(const Tensors& tensors, const c10d::AllreduceOptions& options) {
  const int graphTask = ReleaseProbe::currentGraphTask();
  if (!isPlain(tensors)) {
    seeOther("a backward reduces what is no dense tensor on the CPU");
    return {};
  }
  const at::Tensor& tensor = tensors.front();
  SlotOperation operation = operationOn(SlotOperation::Kind::kAllReduce, tensor);
  operation.reduction = static_cast<std::uint8_t>(options.reduceOp.op_);
  if (graphTask != kNoGraphTask) {
    nameBucket(operation, tensor, graphTask);
  }
  return operation;
}

void MitigatingBackend::nameBucket(SlotOperation& operation, const at::Tensor& tensor, int graphTask) {
  const bool sum = operation.reduction == static_cast<std::uint8_t>(c10d::ReduceOp::SUM) ||
                   operation.reduction == static_cast<std::uint8_t>(c10d::ReduceOp::AVG);
  if (!tensor.is_floating_point() || !sum) {
    seeOther(
        "a backward reduces something else than gradients, as DistributedDataParallel does with "
        "find_unused_parameters=True");
    return;
  }
  const MutexLock lock(mutex_);
  operation.bucket = names_.see(addressOf(tensor), operation.elements, graphTask,
                                [&tensor] { return std::make_unique<WatchedStorage>(tensor); });
  operation.scale = scale_;
  if (operation.bucket) {
    elements_[*operation.bucket] = operation.elements;
  }
  arm();
}

void MitigatingBackend::arm() {
  const bool all = expected_ > 0 && names_.named().elements == static_cast<std::uint64_t>(expected_);
  // Once the models are gone, what is said is still what it was for.
  armedFor_ = all ? std::optional(names_.named()) : expected_ > 0 ? std::nullopt : armedFor_;
  const bool armed = all && names_.refusal().empty() && reason_.empty();
  carrier_->with([armed](Engine& engine) { engine.arm(armed); });
}

void MitigatingBackend::seeOther(const std::string& operation) {
  const int graphTask = ReleaseProbe::currentGraphTask();
  if (graphTask == kNoGraphTask) {
    return;
  }
  const MutexLock lock(mutex_);
  names_.seeOther(operation, graphTask);
  arm();
}

// A group made from this one is exact.
ForwardingBackend::BackendPtr MitigatingBackend::wrap(BackendPtr made, const std::vector<int>& /*ranks*/) {
  return made;
}

// ---- What Python knows and c10d does not ----

void MitigatingBackend::expectGradients(std::int64_t elements) {
  const MutexLock lock(mutex_);
  expected_ += elements;
  arm();
}

void MitigatingBackend::standDown(const std::string& reason) {
  const MutexLock lock(mutex_);
  if (reason_.empty()) {
    reason_ = reason;
  }
  carrier_->with([](Engine& engine) { engine.standDown(); });
}

void MitigatingBackend::exactElsewhere(const std::string& what) {
  carrier_->with([&what](Engine& engine) { engine.exactElsewhere(what); });
}

void MitigatingBackend::flush() {
  carrier_->with([](Engine& engine) { engine.flush(); });
}

// ---- What became of it ----

MitigatingBackend::Status MitigatingBackend::status() const {
  Status status;
  std::string leftAlone;
  std::optional<std::string> exact;
  carrier_->with([&](const Engine& engine) {
    status.ledger = engine.ledger().buckets();
    status.filledByProxy = engine.filledByProxy();
    status.waitedFor = engine.waitedFor();
    status.saved = engine.saved();
    status.grace = engine.grace();
    leftAlone = engine.leftAlone();
    exact = engine.exactInEveryStep();
  });
  status.messages = threads_->messages();
  const MutexLock lock(mutex_);
  describeState(status, leftAlone, exact);
  status.elements = elements_;
  return status;
}

void MitigatingBackend::describeState(Status& status, const std::string& leftAlone,
                                      const std::optional<std::string>& exact) const {
  if (!reason_.empty() || !names_.refusal().empty()) {
    status.state = State::kOff;
    status.text = reason_.empty() ? names_.refusal() : reason_;
  } else if (!armedFor_) {
    status.text = expected_ <= 0 ? "no model is wrapped in DistributedDataParallel on the default group"
                                 : "buckets with " + std::to_string(names_.named().elements) + " of " +
                                       std::to_string(expected_) + " elements of gradients have been found";
  } else if (exact) {
    status.state = State::kAside;
    status.text = "there is " + *exact + " in every step, in which all ranks wait for each other anyway";
  } else if (!leftAlone.empty()) {
    status.state = State::kAlone;
    status.text = leftAlone;
  } else {
    status.state = State::kArmed;
    status.text = "for " + std::to_string(armedFor_->buckets) +
                  (armedFor_->buckets == 1 ? " bucket of " : " buckets of ") + std::to_string(armedFor_->elements) +
                  " elements, staleness " + std::to_string(options_.engine.staleness) + " steps, quorum " +
                  std::to_string(options_.quorum) + " of " + std::to_string(getSize()) + " ranks";
  }
}

MitigationSummary MitigatingBackend::summary() const {
  const Status now = status();
  MitigationSummary summary;
  summary.armed = now.state == State::kArmed;
  summary.mode = modeName(options_.engine.mode);
  summary.text = now.text;
  summary.filledByProxy = now.filledByProxy;
  for (const auto& [bucket, ledger] : now.ledger) {
    summary.late += ledger.produced - ledger.onTime;
    summary.applied += ledger.late;
    summary.dropped += ledger.dropped;
    summary.pending += ledger.pending;
    summary.stalenessSum += ledger.staleness;
    summary.stalenessMax = std::max(summary.stalenessMax, ledger.maxStaleness);
  }
  summary.savedUs =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now.saved).count());
  return summary;
}

// ---- Lines for people ----

// On the watching thread. What every rank finds is said by group rank 0, what is one rank's own by that rank.
void MitigatingBackend::sayNews() {
  const Instant now = SteadyClock().now();
  if (now - lastSaid_ < kSayPeriod) {
    return;
  }
  lastSaid_ = now;
  sayBias();
  const Slot reached = carrier_->with([](const Engine& engine) { return engine.reached(); });
  const Status found = status();
  // Not to be armed yet is worth a line only where it should be by now, and one only: the counts in it move on.
  if (found.text == said_ || (found.state == State::kNotYet && (reached < kKnownBy || !said_.empty()))) {
    return;
  }
  const bool own = found.state == State::kAlone || saidState_ == State::kAlone;
  said_ = found.text;
  saidState_ = found.state;
  if (getRank() == 0 || own) {
    processLog()->line(Severity::kInfo, sentence(found));
  }
}

// By the rank itself, while there is still something to be done.
void MitigatingBackend::sayBias() {
  const BucketLedger total = carrier_->with([](const Engine& engine) { return engine.ledger().total(); });
  if (saidBias_ || options_.engine.mode != MitigationMode::kDrop || total.produced < kBiasKnownFrom ||
      static_cast<double>(total.dropped) < kBiasShare * static_cast<double>(total.produced)) {
    return;
  }
  saidBias_ = true;
  processLog()->line(Severity::kWarning,
                     "straggler: mitigation drop has dropped " +
                         fixed(100.0 * static_cast<double>(total.dropped) / static_cast<double>(total.produced), 0) +
                         " % of the gradients of rank " + std::to_string(options_.globalRank) +
                         ": unless all ranks are as often late, what it computes counts less in the model; "
                         "STRAGGLER_MITIGATE=carry loses none");
}

std::string MitigatingBackend::sentence(const Status& status) const {
  const std::string subject = "straggler: mitigation " + modeName(options_.engine.mode) + " ";
  const std::string rank = "rank " + std::to_string(options_.globalRank);
  switch (status.state) {
    case State::kArmed:
      return subject + "is armed " + status.text;
    case State::kAside:
      return subject + "stands aside: " + status.text;
    case State::kAlone:
      return subject + "leaves " + rank + " alone: " + status.text;
    case State::kOff:
      return subject + "is off: " + status.text;
    case State::kNotYet:
      break;
  }
  return subject + "is not armed: " + status.text;
}

// A channel that ends with the job is not worth a line: it is said when the rank goes on without.
void MitigatingBackend::failed(const std::string& reason) {
  standDown(reason);
  failed_ = true;
}

void MitigatingBackend::sayFailure() {
  if (failed_ && failed_.exchange(false)) {
    processLog()->line(Severity::kWarning, "straggler: mitigation " + modeName(options_.engine.mode) +
                                               " is off on rank " + std::to_string(options_.globalRank) + ": " +
                                               status().text + "; training goes on, and waits for late ranks");
  }
}

void MitigatingBackend::record(const std::vector<Participation>& participations) {
  for (const auto& participation : participations) {
    if (record_) {
      record_->line(toJson(options_.globalRank, participation));
    }
  }
}

}  // namespace straggler
