#include "backend/c10d/mitigating_backend.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <ATen/Functions.h>

#include "backend/c10d/blocking.h"
#include "backend/c10d/chained_work.h"
#include "backend/c10d/release_probe.h"
#include "backend/mitigate/control_codec.h"

namespace straggler {
namespace {

constexpr std::chrono::microseconds kLookPeriod{500};
constexpr std::chrono::milliseconds kIdlePeriod{5};

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

std::uint64_t bytesOf(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel() * tensor.element_size());
}

SlotOperation operationOn(SlotOperation::Kind kind, const at::Tensor& tensor) {
  SlotOperation operation;
  operation.kind = kind;
  operation.dtype = static_cast<std::int8_t>(tensor.scalar_type());
  operation.elements = static_cast<std::uint64_t>(tensor.numel());
  operation.bytes = bytesOf(tensor);
  return operation;
}

}  // namespace

MitigatingBackend::MitigatingBackend(BackendPtr inner, std::unique_ptr<ControlChannel> channel, Options options)
    : ForwardingBackend(std::move(inner)),
      options_(options),
      channel_(std::move(channel)),
      inbox_(channel_->inboxOfRank()),
      coordinatorInbox_(getRank() == 0 ? channel_->inboxOfCoordinator() : nullptr),
      engine_(options.engine) {
  threads_.emplace_back([this] { watchLoop(); });
  threads_.emplace_back([this] { hearLoop(); });
  if (coordinatorInbox_) {
    threads_.emplace_back([this] { coordinateLoop(); });
  }
}

MitigatingBackend::~MitigatingBackend() {
  runBlocking([this] { stop(); });
}

void MitigatingBackend::stop() noexcept {
  if (stopping_.exchange(true)) {
    return;
  }
  {
    const MutexLock lock(mutex_);
    engine_.standDown();
    moved_.notifyAll();
  }
  inbox_->close();
  if (coordinatorInbox_) {
    coordinatorInbox_->close();
  }
  for (auto& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

void MitigatingBackend::abort() {
  ForwardingBackend::abort();
  stop();
}

void MitigatingBackend::shutdown() {
  runBlocking([this] { stop(); });
  ForwardingBackend::shutdown();
}

// ---- Main thread ----

ForwardingBackend::WorkPtr MitigatingBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  SlotOperation operation;
  {
    const MutexLock lock(mutex_);
    operation = describe(tensors, options);
    if (operation.bucket) {
      forms_[*operation.bucket] = {tensors.front().options(), options};
      forms_[*operation.bucket].allreduce.asyncOp = true;
    }
  }
  return arrive(operation, tensors.size() == 1 ? &tensors.front() : nullptr,
                [&] { return inner()->allreduce(tensors, options); });
}

ForwardingBackend::WorkPtr MitigatingBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  SlotOperation operation;
  if (tensors.size() == 1 && tensors.front().is_cpu() && !tensors.front().is_sparse()) {
    operation = operationOn(SlotOperation::Kind::kBroadcast, tensors.front());
    operation.root = static_cast<std::int32_t>(options.rootRank);
    const MutexLock lock(mutex_);
    broadcasts_[operation.dtype] = tensors.front().options();
  }
  return arrive(operation, tensors.size() == 1 ? &tensors.front() : nullptr,
                [&] { return inner()->broadcast(tensors, options); });
}

// What is neither an allreduce nor a broadcast.
ForwardingBackend::WorkPtr MitigatingBackend::call(const Call& call, c10::function_ref<WorkPtr()> issue) {
  if (!isNumbered(call.kind) || call.kind == OpKind::kCoalesced) {
    const MutexLock lock(mutex_);
    standDown(std::string("the group uses ") + call.method);
  }
  if (!isNumbered(call.kind)) {
    return issue();
  }
  if (ReleaseProbe::currentGraphTask() != kNoGraphTask) {
    const MutexLock lock(mutex_);
    names_.refuse(std::string("a backward uses ") + call.method);
  }
  return arrive(SlotOperation{}, nullptr, issue);
}

SlotOperation MitigatingBackend::describe(const Tensors& tensors, const c10d::AllreduceOptions& options) {
  const int graphTask = ReleaseProbe::currentGraphTask();
  const bool dense = tensors.size() == 1 && tensors.front().is_cpu() && !tensors.front().is_sparse() &&
                     tensors.front().is_contiguous();
  if (!dense) {
    if (graphTask != kNoGraphTask) {
      names_.refuse("a backward reduces what is no dense tensor on the CPU");
    }
    return {};
  }
  const at::Tensor& tensor = tensors.front();
  SlotOperation operation = operationOn(SlotOperation::Kind::kAllReduce, tensor);
  operation.reduction = static_cast<std::uint8_t>(options.reduceOp.op_);
  if (graphTask == kNoGraphTask) {
    return operation;
  }
  const auto reduction = options.reduceOp.op_;
  if (!tensor.is_floating_point() || (reduction != c10d::ReduceOp::SUM && reduction != c10d::ReduceOp::AVG)) {
    names_.refuse("a backward reduces something else than gradients");
    return operation;
  }
  operation.bucket =
      names_.see(addressOf(tensor), graphTask, [&tensor] { return std::make_unique<WatchedStorage>(tensor); });
  return operation;
}

ForwardingBackend::WorkPtr MitigatingBackend::arrive(const SlotOperation& operation, at::Tensor* tensor,
                                                     c10::function_ref<WorkPtr()> issue) {
  const MutexLock lock(mutex_);
  Engine::Arrival arrival = engine_.arrive(operation, SteadyClock().now());
  while (std::holds_alternative<Engine::Wait>(arrival)) {
    runBlocking([this] { moved_.waitFor(mutex_, kIdlePeriod, [] { return false; }); });
    arrival = engine_.arrive(operation, SteadyClock().now());
  }
  if (const auto* failure = std::get_if<Engine::Fail>(&arrival)) {
    standDown(failure->reason);
    TORCH_CHECK(false, "straggler: ", failure->reason, "; the group cannot be used any more");
  }
  if (const auto* order = std::get_if<Engine::Take>(&arrival)) {
    WorkPtr work = take(*order, *tensor);
    fillAll();
    return work;
  }
  const auto order = std::get<Engine::Issue>(arrival);
  if (operation.bucket) {
    residuals_.moveInto(*operation.bucket, *tensor);
  }
  WorkPtr work = issued(order.slot, issue());
  fillAll();
  if (work && operation.bucket && options_.engine.mode == MitigationMode::kDrop) {
    work = ChainedWork::after(work, {*tensor}, [this, slot = order.slot, tensor = *tensor]() mutable {
      std::uint32_t participants = 0;
      {
        const MutexLock inner(mutex_);
        participants = engine_.participantsOf(slot);
      }
      rescale(tensor, participants);
    });
  }
  return work;
}

ForwardingBackend::WorkPtr MitigatingBackend::issued(Slot slot, WorkPtr work) {
  if (work) {
    issued_.push_back({slot, work});
  } else {
    engine_.completed(slot, SteadyClock().now());
  }
  return work;
}

ForwardingBackend::WorkPtr MitigatingBackend::take(const Engine::Take& order, at::Tensor& tensor) {
  if (order.owes && !residuals_.add(order.bucket, tensor)) {
    engine_.ledger().discardLast(order.bucket);
  }
  const auto entry = log_.extract(order.slot).mapped();
  return ChainedWork::after(entry.work, {tensor},
                            [entry, tensor]() mutable { tensor.copy_(entry.result.view(tensor.sizes())); });
}

void MitigatingBackend::rescale(at::Tensor& result, std::uint32_t participants) const {
  if (participants > 0) {
    result.mul_(static_cast<double>(getSize()) / participants);
  }
}

void MitigatingBackend::standDown(const std::string& reason) {
  if (reason_.empty()) {
    reason_ = reason;
  }
  engine_.standDown();
}

// ---- Proxy ----

void MitigatingBackend::fillAll() {
  while (const auto order = engine_.nextFill(SteadyClock().now())) {
    fill(*order);
  }
  moved_.notifyAll();
}

void MitigatingBackend::fill(const Engine::Fill& order) {
  const auto elements = static_cast<std::int64_t>(order.operation.elements);
  Tensors tensors;
  WorkPtr work;
  if (order.operation.bucket) {
    const Form& form = forms_.at(*order.operation.bucket);
    tensors = {at::zeros({elements}, form.tensor)};
    residuals_.moveInto(*order.operation.bucket, tensors.front());
    work = inner()->allreduce(tensors, form.allreduce);
  } else {
    c10d::BroadcastOptions options;
    options.rootRank = order.operation.root;
    tensors = {at::empty({elements}, broadcasts_.at(order.operation.dtype))};
    work = inner()->broadcast(tensors, options);
  }
  if (order.participants > 0) {
    work = ChainedWork::after(
        work, tensors, [this, result = tensors.front(), n = order.participants]() mutable { rescale(result, n); });
  }
  log_[order.slot] = {tensors.front(), work};
}

// ---- Threads ----

// The oldest that waits is looked at, as often as it may matter.
void MitigatingBackend::watchLoop() {
  while (!stopping_) {
    Engine::Tell told;
    bool waiting = false;
    {
      const MutexLock lock(mutex_);
      while (!issued_.empty() && issued_.front().work->isCompleted()) {
        engine_.completed(issued_.front().slot, SteadyClock().now());
        issued_.pop_front();
      }
      waiting = !issued_.empty();
      told = engine_.tell(SteadyClock().now());
    }
    const auto send = [this](const ControlMessage& message) { channel_->sendToCoordinator(encodeControl(message)); };
    if (told.caughtUp) {
      send(*told.caughtUp);
    }
    if (told.refusal) {
      send(*told.refusal);
    }
    for (const auto& reservation : told.reservations) {
      send(reservation);
    }
    for (const auto& acknowledgement : told.acknowledgements) {
      send(acknowledgement);
    }
    if (told.pending) {
      send(*told.pending);
    }
    if (const std::string gone = channel_->gone(); !gone.empty()) {
      const MutexLock lock(mutex_);
      standDown("control messages are carried no more: " + gone);
    }
    std::this_thread::sleep_for(waiting ? kLookPeriod : std::chrono::microseconds(kIdlePeriod));
  }
}

void MitigatingBackend::hearLoop() {
  while (const auto bytes = inbox_->receive()) {
    hear(*bytes);
  }
}

void MitigatingBackend::hear(const std::vector<std::uint8_t>& bytes) {
  const auto message = decodeControl(bytes);
  if (!message) {
    return;
  }
  const MutexLock lock(mutex_);
  if (const auto* request = std::get_if<JoinRequest>(&*message)) {
    engine_.requested(*request);
  } else if (const auto* behind = std::get_if<Behind>(&*message)) {
    engine_.heard(*behind);
  } else if (const auto* announcement = std::get_if<Announcement>(&*message)) {
    engine_.heard(*announcement);
  } else if (const auto* go = std::get_if<Go>(&*message)) {
    engine_.heard(*go);
  }
  fillAll();
}

void MitigatingBackend::coordinateLoop() {
  Coordinator coordinator(getSize(), options_.quorum, options_.engine.mode);
  while (const auto bytes = coordinatorInbox_->receive()) {
    const auto message = decodeControl(*bytes);
    if (!message) {
      continue;
    }
    const auto orders = std::visit(
        [&coordinator](const auto& heard) -> std::vector<Coordinator::Order> {
          if constexpr (requires { coordinator.hear(heard, Instant{}); }) {
            return coordinator.hear(heard, SteadyClock().now());
          }
          return {};
        },
        *message);
    for (const auto& order : orders) {
      const auto encoded =
          std::visit([](const auto& each) { return encodeControl(ControlMessage(each)); }, order.message);
      channel_->sendToRank(order.rank, encoded);
    }
  }
}

// ---- What became of it ----

BucketLedger MitigatingBackend::ledger() const {
  const MutexLock lock(mutex_);
  return engine_.ledger().total();
}

std::uint64_t MitigatingBackend::filledByProxy() const {
  const MutexLock lock(mutex_);
  return engine_.filledByProxy();
}

std::map<BucketId, at::Tensor> MitigatingBackend::residuals() const {
  const MutexLock lock(mutex_);
  std::map<BucketId, at::Tensor> copies;
  for (const auto& [bucket, residual] : residuals_.all()) {
    copies[bucket] = residual.clone();
  }
  return copies;
}

std::string MitigatingBackend::standingDown() const {
  const MutexLock lock(mutex_);
  return reason_.empty() ? names_.refusal() : reason_;
}

// A group made from this one is exact.
ForwardingBackend::BackendPtr MitigatingBackend::wrap(BackendPtr made, const std::vector<int>& /*ranks*/) {
  return made;
}

}  // namespace straggler
