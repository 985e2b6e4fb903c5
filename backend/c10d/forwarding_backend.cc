#include "backend/c10d/forwarding_backend.h"

#include <algorithm>
#include <utility>

#include "backend/c10d/blocking.h"

namespace straggler {
namespace {

// ---- What a call's inputs are ----

struct Inputs {
  const char* dtype = "";
  std::uint64_t bytes = 0;
  std::optional<c10::Device> device;
};

void add(Inputs& inputs, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return;
  }
  if (!inputs.device) {
    inputs.device = tensor.device();
    inputs.dtype = c10::toString(tensor.scalar_type());
  }
  inputs.bytes += static_cast<std::uint64_t>(tensor.numel() * tensor.element_size());
}

void add(Inputs& inputs, const std::vector<at::Tensor>& tensors) {
  for (const auto& tensor : tensors) {
    add(inputs, tensor);
  }
}

void add(Inputs& inputs, const std::vector<std::vector<at::Tensor>>& lists) {
  for (const auto& tensors : lists) {
    add(inputs, tensors);
  }
}

// Where a call has no tensor.
void add(Inputs& inputs, std::optional<c10::Device> device) { inputs.device = device; }

}  // namespace

// Every operation goes through here.
template <class T, class Issue>
ForwardingBackend::WorkPtr ForwardingBackend::forward(OpKind kind, const char* method, const T& inputs,
                                                      bool asynchronous, Issue&& issue) {
  Inputs described;
  add(described, inputs);
  return call({kind, method, described.dtype, described.bytes, described.device.value_or(c10::kCPU), asynchronous},
              std::forward<Issue>(issue));
}

ForwardingBackend::WorkPtr ForwardingBackend::call(const Call& /*call*/, c10::function_ref<WorkPtr()> issue) {
  return issue();
}

ForwardingBackend::ForwardingBackend(BackendPtr inner)
    : Backend(inner->getRank(), inner->getSize()), inner_(std::move(inner)) {
  // What is not virtual is copied: nobody asks the inner.
  pg_uid_ = inner_->getGroupUid();
  pg_desc_ = inner_->getGroupDesc();
  bound_device_id_ = inner_->getBoundDeviceId();
  use_pg_for_symm_mem_rendezvous_ = inner_->getUsePgForSymmMemRendezvous();
}

ForwardingBackend::~ForwardingBackend() {
  runBlocking([this] { inner_.reset(); });
}

// ---- Capabilities ----

const std::string ForwardingBackend::getBackendName() const { return inner_->getBackendName(); }
ForwardingBackend::OptionsPtr ForwardingBackend::getBackendOptions() { return inner_->getBackendOptions(); }
bool ForwardingBackend::supportsSplitting() const { return inner_->supportsSplitting(); }
bool ForwardingBackend::supportsCoalescing() const { return inner_->supportsCoalescing(); }
bool ForwardingBackend::supportsTimeEstimation() const { return inner_->supportsTimeEstimation(); }
bool ForwardingBackend::supportsShrinking() const { return inner_->supportsShrinking(); }
bool ForwardingBackend::supportsTensorAlloc(c10::DeviceIndex device) { return inner_->supportsTensorAlloc(device); }
#if STRAGGLER_TORCH >= 214
bool ForwardingBackend::supportsReconfigure() const { return inner_->supportsReconfigure(); }
bool ForwardingBackend::supportsWindow() const { return inner_->supportsWindow(); }
#endif
#if STRAGGLER_TORCH >= 215
bool ForwardingBackend::isInitialized() { return inner_->isInitialized(); }
bool ForwardingBackend::supportsAbortHooks() const { return inner_->supportsAbortHooks(); }
bool ForwardingBackend::supportsCompletionHooks() const { return inner_->supportsCompletionHooks(); }
#endif

// ---- Collectives ----

ForwardingBackend::WorkPtr ForwardingBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  return forward(OpKind::kBroadcast, "broadcast", tensors, options.asyncOp,
                 [&] { return inner_->broadcast(tensors, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  return forward(OpKind::kAllReduce, "allreduce", tensors, options.asyncOp,
                 [&] { return inner_->allreduce(tensors, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::allreduce_sparse(Tensors& tensors,
                                                               const c10d::AllreduceOptions& options) {
  return forward(OpKind::kAllReduce, "allreduce_sparse", tensors, options.asyncOp,
                 [&] { return inner_->allreduce_sparse(tensors, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::allreduce_coalesced(Tensors& tensors,
                                                                  const c10d::AllreduceCoalescedOptions& options) {
  return forward(OpKind::kAllReduce, "allreduce_coalesced", tensors, options.asyncOp,
                 [&] { return inner_->allreduce_coalesced(tensors, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  return forward(OpKind::kReduce, "reduce", tensors, options.asyncOp, [&] { return inner_->reduce(tensors, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                                        const c10d::AllgatherOptions& options) {
  return forward(OpKind::kAllGather, "allgather", inputs, options.asyncOp,
                 [&] { return inner_->allgather(outputs, inputs, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                                                  const c10d::AllgatherOptions& options) {
  return forward(OpKind::kAllGather, "allgather_coalesced", inputs, options.asyncOp,
                 [&] { return inner_->allgather_coalesced(outputs, inputs, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::gather(TensorLists& outputs, Tensors& inputs,
                                                     const c10d::GatherOptions& options) {
  return forward(OpKind::kGather, "gather", inputs, options.asyncOp,
                 [&] { return inner_->gather(outputs, inputs, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::scatter(Tensors& outputs, TensorLists& inputs,
                                                      const c10d::ScatterOptions& options) {
  // Only the root has inputs: the outputs tell type and device on every rank.
  return forward(OpKind::kScatter, "scatter", outputs, options.asyncOp,
                 [&] { return inner_->scatter(outputs, inputs, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                                             const c10d::ReduceScatterOptions& options) {
  return forward(OpKind::kReduceScatter, "reduce_scatter", inputs, options.asyncOp,
                 [&] { return inner_->reduce_scatter(outputs, inputs, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                                       const c10d::AllToAllOptions& options) {
  return forward(OpKind::kAllToAll, "alltoall", inputs, options.asyncOp,
                 [&] { return inner_->alltoall(outputs, inputs, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::barrier(const c10d::BarrierOptions& options) {
  return forward(OpKind::kBarrier, "barrier", options.device, options.asyncOp,
                 [&] { return inner_->barrier(options); });
}

// It returns once all ranks have met: there is no Work.
void ForwardingBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool waitAllRanks) {
  forward(OpKind::kBarrier, "monitoredBarrier", options.device, false, [&] {
    inner_->monitoredBarrier(options, waitAllRanks);
    return WorkPtr();
  });
}

#if STRAGGLER_TORCH >= 214

ForwardingBackend::WorkPtr ForwardingBackend::all_gather_single(at::Tensor& output, at::Tensor& input,
                                                                const c10d::AllgatherOptions& options) {
  return forward(OpKind::kAllGather, "all_gather_single", input, options.asyncOp,
                 [&] { return inner_->all_gather_single(output, input, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::all_gather_single_coalesced(Tensors& outputs, Tensors& inputs,
                                                                          const c10d::AllgatherOptions& options) {
  return forward(OpKind::kAllGather, "all_gather_single_coalesced", inputs, options.asyncOp,
                 [&] { return inner_->all_gather_single_coalesced(outputs, inputs, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::gather_single(at::Tensor& output, at::Tensor& input,
                                                            const c10d::GatherOptions& options) {
  return forward(OpKind::kGather, "gather_single", input, options.asyncOp,
                 [&] { return inner_->gather_single(output, input, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::reduce_scatter_single(at::Tensor& output, at::Tensor& input,
                                                                    const c10d::ReduceScatterOptions& options) {
  return forward(OpKind::kReduceScatter, "reduce_scatter_single", input, options.asyncOp,
                 [&] { return inner_->reduce_scatter_single(output, input, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::reduce_scatter_single_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  return forward(OpKind::kReduceScatter, "reduce_scatter_single_coalesced", inputs, options.asyncOp,
                 [&] { return inner_->reduce_scatter_single_coalesced(outputs, inputs, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::all_to_all_single(at::Tensor& output, at::Tensor& input,
                                                                std::vector<int64_t>& outputSplits,
                                                                std::vector<int64_t>& inputSplits,
                                                                const c10d::AllToAllOptions& options) {
  return forward(OpKind::kAllToAll, "all_to_all_single", input, options.asyncOp,
                 [&] { return inner_->all_to_all_single(output, input, outputSplits, inputSplits, options); });
}

#else

ForwardingBackend::WorkPtr ForwardingBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                              const c10d::AllgatherOptions& options) {
  return forward(OpKind::kAllGather, "_allgather_base", input, options.asyncOp,
                 [&] { return inner_->_allgather_base(output, input, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                              const c10d::AllgatherOptions& options) {
  return forward(OpKind::kAllGather, "allgather_into_tensor_coalesced", inputs, options.asyncOp,
                 [&] { return inner_->allgather_into_tensor_coalesced(outputs, inputs, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                                   const c10d::ReduceScatterOptions& options) {
  return forward(OpKind::kReduceScatter, "_reduce_scatter_base", input, options.asyncOp,
                 [&] { return inner_->_reduce_scatter_base(output, input, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  return forward(OpKind::kReduceScatter, "reduce_scatter_tensor_coalesced", inputs, options.asyncOp,
                 [&] { return inner_->reduce_scatter_tensor_coalesced(outputs, inputs, options); });
}

ForwardingBackend::WorkPtr ForwardingBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                            std::vector<int64_t>& outputSplits,
                                                            std::vector<int64_t>& inputSplits,
                                                            const c10d::AllToAllOptions& options) {
  return forward(OpKind::kAllToAll, "alltoall_base", input, options.asyncOp,
                 [&] { return inner_->alltoall_base(output, input, outputSplits, inputSplits, options); });
}

#endif

void ForwardingBackend::startCoalescing() { inner_->startCoalescing(); }

ForwardingBackend::WorkPtr ForwardingBackend::endCoalescing() {
  return forward(OpKind::kCoalesced, "endCoalescing", std::optional<c10::Device>(), true,
                 [&] { return inner_->endCoalescing(); });
}

// ---- Point to point ----

ForwardingBackend::WorkPtr ForwardingBackend::send(Tensors& tensors, int destination, int tag) {
  return forward(OpKind::kSend, "send", tensors, true, [&] { return inner_->send(tensors, destination, tag); });
}

ForwardingBackend::WorkPtr ForwardingBackend::recv(Tensors& tensors, int source, int tag) {
  return forward(OpKind::kRecv, "recv", tensors, true, [&] { return inner_->recv(tensors, source, tag); });
}

ForwardingBackend::WorkPtr ForwardingBackend::recvAnysource(Tensors& tensors, int tag) {
  return forward(OpKind::kRecv, "recvAnysource", tensors, true, [&] { return inner_->recvAnysource(tensors, tag); });
}

// ---- Groups made from this one ----

ForwardingBackend::BackendPtr ForwardingBackend::split(const StorePtr& store, const std::vector<int>& ranks,
                                                       const OptionsPtr& options) {
  auto made = inner_->split(store, ranks, options);
  return made ? wrap(std::move(made), ranks) : made;
}

ForwardingBackend::BackendPtr ForwardingBackend::merge(const StorePtr& store, const OptionsPtr& options,
                                                       const int& rank, const int& size) {
  auto made = inner_->merge(store, options, rank, size);
  return made ? wrap(std::move(made), {}) : made;
}

ForwardingBackend::BackendPtr ForwardingBackend::shrink(const std::vector<int64_t>& ranksToExclude, int flags,
                                                        const OptionsPtr& options) {
  auto made = inner_->shrink(ranksToExclude, flags, options);
  std::vector<int> left;
  for (int rank = 0; rank < getSize(); ++rank) {
    if (std::find(ranksToExclude.begin(), ranksToExclude.end(), rank) == ranksToExclude.end()) {
      left.push_back(rank);
    }
  }
  return made ? wrap(std::move(made), left) : made;
}

// ---- Identity, device, sequence numbers ----

void ForwardingBackend::setGroupUid(const std::string& uid) {
  Backend::setGroupUid(uid);
  inner_->setGroupUid(uid);
}

void ForwardingBackend::setSequenceNumberForGroup() { inner_->setSequenceNumberForGroup(); }
uint64_t ForwardingBackend::getSequenceNumberForGroup() { return inner_->getSequenceNumberForGroup(); }
void ForwardingBackend::eagerConnectSingleDevice(at::Device device) { inner_->eagerConnectSingleDevice(device); }
#if STRAGGLER_TORCH >= 214
std::optional<at::Device> ForwardingBackend::getBoundDeviceId() const { return inner_->getBoundDeviceId(); }
void ForwardingBackend::setBoundDeviceId(std::optional<at::Device> device) {
  Backend::setBoundDeviceId(device);
  inner_->setBoundDeviceId(device);
}
#endif

// ---- Life, timeouts, errors ----

void ForwardingBackend::setTimeout(std::chrono::milliseconds timeout) { inner_->setTimeout(timeout); }
void ForwardingBackend::abort() { inner_->abort(); }
void ForwardingBackend::shutdown() { inner_->shutdown(); }
c10d::ErrorType ForwardingBackend::getError() { return inner_->getError(); }
#if STRAGGLER_TORCH >= 213
void ForwardingBackend::suspend() { inner_->suspend(); }
void ForwardingBackend::resume() { inner_->resume(); }
std::unordered_map<std::string, uint64_t> ForwardingBackend::getMemoryStats() { return inner_->getMemoryStats(); }
#endif
#if STRAGGLER_TORCH >= 214
void ForwardingBackend::addEphemeralTimeout(const std::chrono::milliseconds& timeout) {
  inner_->addEphemeralTimeout(timeout);
}
c10d::ReconfigureHandle ForwardingBackend::get_reconfigure_handle() const { return inner_->get_reconfigure_handle(); }
ForwardingBackend::WorkPtr ForwardingBackend::reconfigure(const c10d::ReconfigureOptions& options) {
  auto work = inner_->reconfigure(options);
  rank_ = inner_->getRank();
  size_ = inner_->getSize();
  return work;
}
#endif

// ---- Hooks, timing, memory ----

void ForwardingBackend::registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) {
  auto kept = hook;
  inner_->registerOnCompletionHook(std::move(hook));
  // hasHooks() is not virtual and looks at this member: it must answer as the inner does. Never called from here.
  onCompletionHook_ = std::move(kept);
}
void ForwardingBackend::waitForPendingWorks() { inner_->waitForPendingWorks(); }
void ForwardingBackend::enableCollectivesTiming() { inner_->enableCollectivesTiming(); }
std::shared_ptr<c10::Allocator> ForwardingBackend::getMemAllocator() { return inner_->getMemAllocator(); }
at::Tensor ForwardingBackend::allocateTensor(long size, at::TensorOptions options) {
  return inner_->allocateTensor(size, options);
}
#if STRAGGLER_TORCH >= 214
c10::intrusive_ptr<c10d::Window> ForwardingBackend::new_window(const std::optional<at::Tensor>& tensor) {
  return inner_->new_window(tensor);
}
void ForwardingBackend::registerAbortHook(int64_t id, c10d::AbortHook hook) {
  inner_->registerAbortHook(id, std::move(hook));
}
void ForwardingBackend::unregisterAbortHook(int64_t id) { inner_->unregisterAbortHook(id); }
#endif
#if STRAGGLER_TORCH >= 215
void ForwardingBackend::startTimeEstimate() { inner_->startTimeEstimate(); }
float ForwardingBackend::endTimeEstimate() { return inner_->endTimeEstimate(); }
void ForwardingBackend::registerCompletionHook(int64_t id, c10d::CompletionHook hook) {
  inner_->registerCompletionHook(id, std::move(hook));
}
void ForwardingBackend::unregisterCompletionHook(int64_t id) { inner_->unregisterCompletionHook(id); }
#endif

}  // namespace straggler
