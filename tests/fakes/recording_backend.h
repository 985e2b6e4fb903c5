// RecordingBackend: an inner backend that communicates nothing. It keeps every call as a line of text, gives each call's
// Work a number, answers capability queries as it is told, calls the hooks that it is given, and throws on demand.
//
// A test holds it against the installed Backend.hpp, as it does the wrapper: every virtual method is kept.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "backend/c10d/torch_version.h"
#include "tests/fakes/call_text.h"
#include "tests/fakes/recording_work.h"

namespace straggler {

class RecordingBackend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
  using StorePtr = c10::intrusive_ptr<c10d::Store>;
  using OptionsPtr = c10::intrusive_ptr<Options>;

  explicit RecordingBackend(int rank = 0, int size = 1) : Backend(rank, size) {}

  // ---- What the test sets ----
  bool capable = true;        // the answer to every capability query
  bool givesWorks = true;     // else calls return null, as synchronous NCCL does
  bool givesFutures = true;   // with each Work
  bool givesBackends = true;  // else split gives null, as on a rank that is not in the new group
  std::exception_ptr throws;  // what every call throws
  int newRank = 0;            // of this backend after reconfigure(), and of those it makes
  int newSize = 1;
  OptionsPtr options = c10::make_intrusive<Options>("recording");

  // ---- What the test reads ----
  mutable std::vector<std::string> calls;
  c10::intrusive_ptr<RecordingWork> lastWork;
  c10::intrusive_ptr<RecordingBackend> lastMade;
  void forget() {
    calls.clear();
    works_ = 0;
  }

  // ---- Capabilities ----
  const std::string getBackendName() const override { return note("getBackendName"), "recording"; }
  OptionsPtr getBackendOptions() override { return note("getBackendOptions"), options; }
  bool supportsSplitting() const override { return note("supportsSplitting"), capable; }
  bool supportsCoalescing() const override { return note("supportsCoalescing"), capable; }
  bool supportsTimeEstimation() const override { return note("supportsTimeEstimation"), capable; }
  bool supportsShrinking() const override { return note("supportsShrinking"), capable; }
  bool supportsTensorAlloc(c10::DeviceIndex device) override { return note("supportsTensorAlloc", device), capable; }
#if STRAGGLER_TORCH >= 214
  bool supportsReconfigure() const override { return note("supportsReconfigure"), capable; }
  bool supportsWindow() const override { return note("supportsWindow"), capable; }
#endif
#if STRAGGLER_TORCH >= 215
  bool isInitialized() override { return note("isInitialized"), capable; }
  bool supportsAbortHooks() const override { return note("supportsAbortHooks"), capable; }
  bool supportsCompletionHooks() const override { return note("supportsCompletionHooks"), capable; }
#endif

  // ---- Collectives ----
  WorkPtr broadcast(Tensors& t, const c10d::BroadcastOptions& o) override { return work("broadcast", t, o); }
  WorkPtr allreduce(Tensors& t, const c10d::AllreduceOptions& o) override { return work("allreduce", t, o); }
  WorkPtr allreduce_sparse(Tensors& t, const c10d::AllreduceOptions& o) override {
    return work("allreduce_sparse", t, o);
  }
  WorkPtr allreduce_coalesced(Tensors& t, const c10d::AllreduceCoalescedOptions& o) override {
    return work("allreduce_coalesced", t, o);
  }
  WorkPtr reduce(Tensors& t, const c10d::ReduceOptions& o) override { return work("reduce", t, o); }
  WorkPtr allgather(TensorLists& out, Tensors& in, const c10d::AllgatherOptions& o) override {
    return work("allgather", out, in, o);
  }
  WorkPtr allgather_coalesced(TensorLists& out, Tensors& in, const c10d::AllgatherOptions& o) override {
    return work("allgather_coalesced", out, in, o);
  }
  WorkPtr gather(TensorLists& out, Tensors& in, const c10d::GatherOptions& o) override {
    return work("gather", out, in, o);
  }
  WorkPtr scatter(Tensors& out, TensorLists& in, const c10d::ScatterOptions& o) override {
    return work("scatter", out, in, o);
  }
  WorkPtr reduce_scatter(Tensors& out, TensorLists& in, const c10d::ReduceScatterOptions& o) override {
    return work("reduce_scatter", out, in, o);
  }
  WorkPtr alltoall(Tensors& out, Tensors& in, const c10d::AllToAllOptions& o) override {
    return work("alltoall", out, in, o);
  }
  WorkPtr barrier(const c10d::BarrierOptions& o) override { return work("barrier", o); }
  void monitoredBarrier(const c10d::BarrierOptions& o, bool waitAllRanks) override {
    note("monitoredBarrier", o, waitAllRanks);
  }
#if STRAGGLER_TORCH >= 214
  WorkPtr all_gather_single(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& o) override {
    return work("all_gather_single", out, in, o);
  }
  WorkPtr all_gather_single_coalesced(Tensors& out, Tensors& in, const c10d::AllgatherOptions& o) override {
    return work("all_gather_single_coalesced", out, in, o);
  }
  WorkPtr gather_single(at::Tensor& out, at::Tensor& in, const c10d::GatherOptions& o) override {
    return work("gather_single", out, in, o);
  }
  WorkPtr reduce_scatter_single(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& o) override {
    return work("reduce_scatter_single", out, in, o);
  }
  WorkPtr reduce_scatter_single_coalesced(Tensors& out, Tensors& in, const c10d::ReduceScatterOptions& o) override {
    return work("reduce_scatter_single_coalesced", out, in, o);
  }
  WorkPtr all_to_all_single(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& outputSplits,
                            std::vector<int64_t>& inputSplits, const c10d::AllToAllOptions& o) override {
    return work("all_to_all_single", out, in, outputSplits, inputSplits, o);
  }
#else
  WorkPtr _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& o) override {
    return work("_allgather_base", out, in, o);
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& out, Tensors& in, const c10d::AllgatherOptions& o) override {
    return work("allgather_into_tensor_coalesced", out, in, o);
  }
  WorkPtr _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& o) override {
    return work("_reduce_scatter_base", out, in, o);
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& out, Tensors& in, const c10d::ReduceScatterOptions& o) override {
    return work("reduce_scatter_tensor_coalesced", out, in, o);
  }
  WorkPtr alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& outputSplits,
                        std::vector<int64_t>& inputSplits, const c10d::AllToAllOptions& o) override {
    return work("alltoall_base", out, in, outputSplits, inputSplits, o);
  }
#endif
  void startCoalescing() override { note("startCoalescing"); }
  WorkPtr endCoalescing() override { return work("endCoalescing"); }

  // ---- Point to point ----
  WorkPtr send(Tensors& t, int destination, int tag) override { return work("send", t, destination, tag); }
  WorkPtr recv(Tensors& t, int source, int tag) override { return work("recv", t, source, tag); }
  WorkPtr recvAnysource(Tensors& t, int tag) override { return work("recvAnysource", t, tag); }

  // ---- Groups made from this one ----
  BackendPtr split(const StorePtr& store, const std::vector<int>& ranks, const OptionsPtr& o) override {
    return make("split", store, ranks, o);
  }
  BackendPtr merge(const StorePtr& store, const OptionsPtr& o, const int& rank, const int& size) override {
    return make("merge", store, o, rank, size);
  }
  BackendPtr shrink(const std::vector<int64_t>& ranksToExclude, int flags, const OptionsPtr& o) override {
    return make("shrink", ranksToExclude, flags, o);
  }

  // ---- Identity, device, sequence numbers ----
  void setGroupUid(const std::string& uid) override {
    note("setGroupUid", uid);
    Backend::setGroupUid(uid);
  }
  void setSequenceNumberForGroup() override { note("setSequenceNumberForGroup"); }
  uint64_t getSequenceNumberForGroup() override { return note("getSequenceNumberForGroup"), 77; }
  void eagerConnectSingleDevice(at::Device device) override { note("eagerConnectSingleDevice", device); }
#if STRAGGLER_TORCH >= 214
  std::optional<at::Device> getBoundDeviceId() const override {
    return note("getBoundDeviceId"), Backend::getBoundDeviceId();
  }
  void setBoundDeviceId(std::optional<at::Device> device) override {
    note("setBoundDeviceId", device);
    Backend::setBoundDeviceId(device);
  }
#endif

  // ---- Life, timeouts, errors ----
  void setTimeout(std::chrono::milliseconds timeout) override { note("setTimeout", timeout); }
  void abort() override { note("abort"); }
  void shutdown() override { note("shutdown"); }
  c10d::ErrorType getError() override { return note("getError"), c10d::ErrorType::REMOTE_ERROR; }
#if STRAGGLER_TORCH >= 213
  void suspend() override { note("suspend"); }
  void resume() override { note("resume"); }
  std::unordered_map<std::string, uint64_t> getMemoryStats() override {
    note("getMemoryStats");
    return {{ "allocated", 4096 }};
  }
#endif
#if STRAGGLER_TORCH >= 214
  void addEphemeralTimeout(const std::chrono::milliseconds& timeout) override { note("addEphemeralTimeout", timeout); }
  c10d::ReconfigureHandle get_reconfigure_handle() const override { return note("get_reconfigure_handle"), "handle"; }
  WorkPtr reconfigure(const c10d::ReconfigureOptions& o) override {
    auto done = work("reconfigure", o);
    rank_ = newRank;
    size_ = newSize;
    return done;
  }
#endif

  // ---- Hooks, timing, memory ----
  void registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) override {
    note("registerOnCompletionHook", hook);
    onCompletionHook_ = std::move(hook);
    onCompletionHook_(nullptr);
  }
  void waitForPendingWorks() override { note("waitForPendingWorks"); }
  void enableCollectivesTiming() override { note("enableCollectivesTiming"); }
  std::shared_ptr<c10::Allocator> getMemAllocator() override { return note("getMemAllocator"), allocator_; }
  at::Tensor allocateTensor(long size, at::TensorOptions o) override {
    note("allocateTensor", size, o);
    return at::empty({size}, o);
  }
#if STRAGGLER_TORCH >= 214
  c10::intrusive_ptr<c10d::Window> new_window(const std::optional<at::Tensor>& tensor) override {
    return note("new_window", tensor), window_;
  }
  void registerAbortHook(int64_t id, c10d::AbortHook hook) override {
    note("registerAbortHook", id, hook);
    hook();
  }
  void unregisterAbortHook(int64_t id) override { note("unregisterAbortHook", id); }
#endif
#if STRAGGLER_TORCH >= 215
  void startTimeEstimate() override { note("startTimeEstimate"); }
  float endTimeEstimate() override { return note("endTimeEstimate"), 12.5F; }
  void registerCompletionHook(int64_t id, c10d::CompletionHook hook) override {
    note("registerCompletionHook", id, hook);
    hook({});
  }
  void unregisterCompletionHook(int64_t id) override { note("unregisterCompletionHook", id); }
#endif

 private:
  template <class... Args>
  void note(const char* method, const Args&... args) const {
    calls.push_back(CallText::of(method, args...));
    if (throws) {
      std::rethrow_exception(throws);
    }
  }
  template <class... Args>
  WorkPtr work(const char* method, const Args&... args) {
    note(method, args...);
    lastWork = givesWorks ? c10::make_intrusive<RecordingWork>(++works_) : nullptr;
    if (givesWorks && givesFutures) {
      lastWork->future = RecordingWork::makeFuture();
    }
    return lastWork;
  }
  template <class... Args>
  BackendPtr make(const char* method, const Args&... args) {
    note(method, args...);
    lastMade = givesBackends ? c10::make_intrusive<RecordingBackend>(newRank, newSize) : nullptr;
    return lastMade;
  }

  std::uint64_t works_ = 0;
  std::shared_ptr<c10::Allocator> allocator_{c10::GetAllocator(c10::kCPU), [](c10::Allocator*) {}};
#if STRAGGLER_TORCH >= 214
  c10::intrusive_ptr<c10d::Window> window_ = c10::make_intrusive<c10d::Window>();
#endif
};

}  // namespace straggler
