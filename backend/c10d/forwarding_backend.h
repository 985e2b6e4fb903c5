// ForwardingBackend: a c10d::Backend that passes every virtual method on to an inner backend, and nothing else.
//
// It is the one place that knows Backend.hpp's whole surface; a test reads the installed header and fails on a method that
// is neither forwarded nor waived with a reason. What is done around an operation is decided by two hooks:
//
//   call()  around every operation that issues communication
//   wrap()  for every backend that the inner makes (split, merge, shrink), so that subgroups do not escape
//
// Contract: arguments and results pass untouched, and so do the inner's exceptions. Capability queries and the backend's
// name answer as the inner does, since torch branches on exact names.
//
// From torch 2.14 the canonical `*_single` names are overridden and the same are called on the inner: the base class's
// old aliases reach them. Before, the old names are. Mixing the two trips the base's guard against endless forwarding.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "backend/c10d/torch_version.h"
#include "backend/observe/operation.h"

namespace straggler {

// One call that issues communication, described without its tensors.
struct Call {
  OpKind kind = OpKind::kAllReduce;
  const char* method = "";  // Backend's name of it
  const char* dtype = "";   // of the first input tensor; empty if there is none
  std::uint64_t bytes = 0;  // of this rank's input
  c10::Device device = c10::kCPU;
  bool asynchronous = true;  // the caller asked for a Work to wait for
};

class ForwardingBackend : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
  using StorePtr = c10::intrusive_ptr<c10d::Store>;
  using OptionsPtr = c10::intrusive_ptr<Options>;

  explicit ForwardingBackend(BackendPtr inner);
  // The inner's destructor may wait for its operations: as torch's own holder does, Python's other threads go on.
  ~ForwardingBackend() override;

  const BackendPtr& inner() const { return inner_; }

  // ---- Capabilities ----
  const std::string getBackendName() const override;
  OptionsPtr getBackendOptions() override;
  bool supportsSplitting() const override;
  bool supportsCoalescing() const override;
  bool supportsTimeEstimation() const override;
  bool supportsShrinking() const override;
  bool supportsTensorAlloc(c10::DeviceIndex device) override;
#if STRAGGLER_TORCH >= 214
  bool supportsReconfigure() const override;
  bool supportsWindow() const override;
#endif
#if STRAGGLER_TORCH >= 215
  bool isInitialized() override;
  bool supportsAbortHooks() const override;
  bool supportsCompletionHooks() const override;
#endif

  // ---- Collectives ----
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool waitAllRanks) override;
#if STRAGGLER_TORCH >= 214
  WorkPtr all_gather_single(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr all_gather_single_coalesced(Tensors& outputs, Tensors& inputs,
                                      const c10d::AllgatherOptions& options) override;
  WorkPtr gather_single(at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& options) override;
  WorkPtr reduce_scatter_single(at::Tensor& output, at::Tensor& input,
                                const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_single_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr all_to_all_single(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& outputSplits,
                            std::vector<int64_t>& inputSplits, const c10d::AllToAllOptions& options) override;
#else
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& outputSplits,
                        std::vector<int64_t>& inputSplits, const c10d::AllToAllOptions& options) override;
#endif
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

  // ---- Point to point ----
  WorkPtr send(Tensors& tensors, int destination, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

  // ---- Groups made from this one ----
  BackendPtr split(const StorePtr& store, const std::vector<int>& ranks, const OptionsPtr& options) override;
  BackendPtr merge(const StorePtr& store, const OptionsPtr& options, const int& rank, const int& size) override;
  BackendPtr shrink(const std::vector<int64_t>& ranksToExclude, int flags, const OptionsPtr& options) override;

  // ---- Identity, device, sequence numbers ----
  void setGroupUid(const std::string& uid) override;
  void setSequenceNumberForGroup() override;
  uint64_t getSequenceNumberForGroup() override;
  void eagerConnectSingleDevice(at::Device device) override;
#if STRAGGLER_TORCH >= 214
  std::optional<at::Device> getBoundDeviceId() const override;
  void setBoundDeviceId(std::optional<at::Device> device) override;
#endif

  // ---- Life, timeouts, errors ----
  void setTimeout(std::chrono::milliseconds timeout) override;
  void abort() override;
  void shutdown() override;
  c10d::ErrorType getError() override;
#if STRAGGLER_TORCH >= 213
  void suspend() override;
  void resume() override;
  std::unordered_map<std::string, uint64_t> getMemoryStats() override;
#endif
#if STRAGGLER_TORCH >= 214
  void addEphemeralTimeout(const std::chrono::milliseconds& timeout) override;
  c10d::ReconfigureHandle get_reconfigure_handle() const override;
  WorkPtr reconfigure(const c10d::ReconfigureOptions& options) override;
#endif

  // ---- Hooks, timing, memory ----
  void registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) override;
  void waitForPendingWorks() override;
  void enableCollectivesTiming() override;
  std::shared_ptr<c10::Allocator> getMemAllocator() override;
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;
#if STRAGGLER_TORCH >= 214
  c10::intrusive_ptr<c10d::Window> new_window(const std::optional<at::Tensor>& tensor) override;
  void registerAbortHook(int64_t id, c10d::AbortHook hook) override;
  void unregisterAbortHook(int64_t id) override;
#endif
#if STRAGGLER_TORCH >= 215
  void startTimeEstimate() override;
  float endTimeEstimate() override;
  void registerCompletionHook(int64_t id, c10d::CompletionHook hook) override;
  void unregisterCompletionHook(int64_t id) override;
#endif

 protected:
  // Around an operation: `issue` calls the inner, once.
  virtual WorkPtr call(const Call& call, c10::function_ref<WorkPtr()> issue);
  // Around a backend of `ranks` (of this group) that the inner made; empty: not known.
  virtual BackendPtr wrap(BackendPtr made, const std::vector<int>& ranks) = 0;

 private:
  template <class Inputs, class Issue>
  WorkPtr forward(OpKind kind, const char* method, const Inputs& inputs, bool asynchronous, Issue&& issue);

  BackendPtr inner_;
};

}  // namespace straggler
