// Every virtual method of c10d::Backend, called once each with arguments that are unlike any default. A test holds this
// list against the installed Backend.hpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "backend/c10d/torch_version.h"
#include "tests/fakes/call_text.h"

namespace straggler {

// Calls the method and tells its result as text. A Work is its sequence number, a group its rank and size.
using BackendCall = std::function<std::string(c10d::Backend& backend)>;

struct BackendMethod {
  std::string name;
  BackendCall call;
};

// What the calls pass on. It outlives them.
struct BackendArguments {
  explicit BackendArguments(bool asynchronous) {
    broadcast.asyncOp = allreduce.asyncOp = coalesced.asyncOp = reduce.asyncOp = allgather.asyncOp = gather.asyncOp =
        scatter.asyncOp = reduceScatter.asyncOp = alltoall.asyncOp = barrier.asyncOp = asynchronous;
  }

  static constexpr std::chrono::milliseconds kTimeout{7531};

  at::Tensor tensor = at::ones({4});
  at::Tensor other = at::zeros({8});
  std::vector<at::Tensor> tensors{at::ones({2, 3}), at::ones({5}, at::kLong)};
  std::vector<at::Tensor> others{at::ones({7}), at::ones({9}, at::kDouble)};
  std::vector<std::vector<at::Tensor>> lists{{at::ones({2})}, {at::ones({3}), at::ones({4})}};
  std::vector<int64_t> outputSplits{3, 5};
  std::vector<int64_t> inputSplits{1, 3};
  c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  c10::intrusive_ptr<c10d::Backend::Options> options = c10::make_intrusive<c10d::Backend::Options>("foreign");

  c10d::BroadcastOptions broadcast{1, 1, kTimeout, true};
  c10d::AllreduceOptions allreduce{c10d::ReduceOp::MAX, kTimeout, true, at::ones({1}, at::kLong)};
  c10d::AllreduceCoalescedOptions coalesced{{c10d::ReduceOp::BXOR, kTimeout, true, std::nullopt}};
  c10d::ReduceOptions reduce{c10d::ReduceOp::PRODUCT, 2, 1, kTimeout, true};
  c10d::AllgatherOptions allgather{kTimeout, true};
  c10d::GatherOptions gather{3, kTimeout, true};
  c10d::ScatterOptions scatter{2, kTimeout, true};
  c10d::ReduceScatterOptions reduceScatter{c10d::ReduceOp::MIN, kTimeout, true};
  c10d::AllToAllOptions alltoall{kTimeout, true};
  c10d::BarrierOptions barrier{{0, 3}, kTimeout, at::Device(at::kCPU), true};
#if STRAGGLER_TORCH >= 214
  c10d::ReconfigureOptions reconfigure{
      11, std::vector<c10d::ReconfigureHandle>{"a", "b"}, kTimeout, {{"transport", "tcp"}, {"depth", "2"}}};
#endif
};

// ---- Results ----

inline std::string told(const c10::intrusive_ptr<c10d::Work>& work) {
  return work ? CallText::of("work", work->getSequencenumber()) : "no work";
}
inline std::string told(const c10::intrusive_ptr<c10d::Backend>& made) {
  return made ? CallText::of("group", made->getRank(), made->getSize()) : "no group";
}
inline std::string told(const at::Tensor& made) { return CallText::of("tensor", made.numel(), made.options()); }
inline std::string told(c10d::ErrorType error) { return CallText::of("error", static_cast<int>(error)); }
inline std::string told(const std::shared_ptr<c10::Allocator>& allocator) {
  return CallText::of("allocator", static_cast<const void*>(allocator.get()));
}
inline std::string told(const std::unordered_map<std::string, uint64_t>& numbers) {
  std::string text;
  for (const auto& [name, number] : numbers) {
    text += CallText::of(name, number);
  }
  return text;
}
template <class T>
std::string told(const T& value) {
  return CallText::of("value", value);
}

// ---- Calls ----

inline std::vector<BackendMethod> everyMethod(bool asynchronous) {
  std::vector<BackendMethod> all;
  const auto arguments = std::make_shared<BackendArguments>(asynchronous);
  // A method with a result, one without, one that is given a hook: then the result is how often the hook was called.
  const auto gives = [&](const char* name, auto method) {
    all.push_back({name, [arguments, method](c10d::Backend& backend) { return told(method(backend, *arguments)); }});
  };
  const auto does = [&](const char* name, auto method) {
    all.push_back({name, [arguments, method](c10d::Backend& backend) {
                     method(backend, *arguments);
                     return std::string();
                   }});
  };
  const auto hooks = [&](const char* name, auto method) {
    all.push_back({name, [method](c10d::Backend& backend) {
                     const auto heard = std::make_shared<int>(0);
                     method(backend, heard);
                     return told(*heard);
                   }});
  };
  using B = c10d::Backend;
  using A = BackendArguments;

  // ---- Capabilities ----
  gives("getBackendName", [](B& b, A&) { return b.getBackendName(); });
  gives("getBackendOptions", [](B& b, A&) { return b.getBackendOptions(); });
  gives("supportsSplitting", [](B& b, A&) { return b.supportsSplitting(); });
  gives("supportsCoalescing", [](B& b, A&) { return b.supportsCoalescing(); });
  gives("supportsTimeEstimation", [](B& b, A&) { return b.supportsTimeEstimation(); });
  gives("supportsShrinking", [](B& b, A&) { return b.supportsShrinking(); });
  gives("supportsTensorAlloc", [](B& b, A&) { return b.supportsTensorAlloc(3); });

  // ---- Collectives ----
  gives("broadcast", [](B& b, A& a) { return b.broadcast(a.tensors, a.broadcast); });
  gives("allreduce", [](B& b, A& a) { return b.allreduce(a.tensors, a.allreduce); });
  gives("allreduce_sparse", [](B& b, A& a) { return b.allreduce_sparse(a.tensors, a.allreduce); });
  gives("allreduce_coalesced", [](B& b, A& a) { return b.allreduce_coalesced(a.tensors, a.coalesced); });
  gives("reduce", [](B& b, A& a) { return b.reduce(a.tensors, a.reduce); });
  gives("allgather", [](B& b, A& a) { return b.allgather(a.lists, a.tensors, a.allgather); });
  gives("allgather_coalesced", [](B& b, A& a) { return b.allgather_coalesced(a.lists, a.tensors, a.allgather); });
  gives("gather", [](B& b, A& a) { return b.gather(a.lists, a.tensors, a.gather); });
  gives("scatter", [](B& b, A& a) { return b.scatter(a.tensors, a.lists, a.scatter); });
  gives("reduce_scatter", [](B& b, A& a) { return b.reduce_scatter(a.tensors, a.lists, a.reduceScatter); });
  gives("alltoall", [](B& b, A& a) { return b.alltoall(a.others, a.tensors, a.alltoall); });
  gives("barrier", [](B& b, A& a) { return b.barrier(a.barrier); });
  does("monitoredBarrier", [](B& b, A& a) { b.monitoredBarrier(a.barrier, true); });
  gives("_allgather_base", [](B& b, A& a) { return b._allgather_base(a.other, a.tensor, a.allgather); });
  gives("allgather_into_tensor_coalesced",
        [](B& b, A& a) { return b.allgather_into_tensor_coalesced(a.others, a.tensors, a.allgather); });
  gives("_reduce_scatter_base", [](B& b, A& a) { return b._reduce_scatter_base(a.tensor, a.other, a.reduceScatter); });
  gives("reduce_scatter_tensor_coalesced",
        [](B& b, A& a) { return b.reduce_scatter_tensor_coalesced(a.tensors, a.others, a.reduceScatter); });
  gives("alltoall_base",
        [](B& b, A& a) { return b.alltoall_base(a.other, a.tensor, a.outputSplits, a.inputSplits, a.alltoall); });
  does("startCoalescing", [](B& b, A&) { b.startCoalescing(); });
  gives("endCoalescing", [](B& b, A&) { return b.endCoalescing(); });

  // ---- Point to point ----
  gives("send", [](B& b, A& a) { return b.send(a.tensors, 1, 42); });
  gives("recv", [](B& b, A& a) { return b.recv(a.tensors, 2, 43); });
  gives("recvAnysource", [](B& b, A& a) { return b.recvAnysource(a.tensors, 44); });

  // ---- Groups made from this one ----
  gives("split", [](B& b, A& a) { return b.split(a.store, {0}, a.options); });
  gives("merge", [](B& b, A& a) { return b.merge(a.store, a.options, 1, 2); });
  gives("shrink", [](B& b, A& a) { return b.shrink({1, 2}, 5, a.options); });

  // ---- Identity, device, sequence numbers ----
  does("setGroupUid", [](B& b, A&) { b.setGroupUid("every method"); });
  does("setSequenceNumberForGroup", [](B& b, A&) { b.setSequenceNumberForGroup(); });
  gives("getSequenceNumberForGroup", [](B& b, A&) { return b.getSequenceNumberForGroup(); });
  does("eagerConnectSingleDevice", [](B& b, A&) { b.eagerConnectSingleDevice(at::Device(at::kCUDA, 3)); });

  // ---- Life, timeouts, errors ----
  does("setTimeout", [](B& b, A&) { b.setTimeout(A::kTimeout); });
  does("abort", [](B& b, A&) { b.abort(); });
  does("shutdown", [](B& b, A&) { b.shutdown(); });
  gives("getError", [](B& b, A&) { return b.getError(); });

  // ---- Hooks, timing, memory ----
  hooks("registerOnCompletionHook", [](B& b, auto heard) { b.registerOnCompletionHook([heard](auto) { ++*heard; }); });
  does("waitForPendingWorks", [](B& b, A&) { b.waitForPendingWorks(); });
  does("enableCollectivesTiming", [](B& b, A&) { b.enableCollectivesTiming(); });
  gives("getMemAllocator", [](B& b, A&) { return b.getMemAllocator(); });
  gives("allocateTensor", [](B& b, A&) { return b.allocateTensor(12, at::TensorOptions(at::kHalf)); });

#if STRAGGLER_TORCH >= 213
  does("suspend", [](B& b, A&) { b.suspend(); });
  does("resume", [](B& b, A&) { b.resume(); });
  gives("getMemoryStats", [](B& b, A&) { return b.getMemoryStats(); });
#endif
#if STRAGGLER_TORCH >= 214
  gives("supportsReconfigure", [](B& b, A&) { return b.supportsReconfigure(); });
  gives("supportsWindow", [](B& b, A&) { return b.supportsWindow(); });
  gives("all_gather_single", [](B& b, A& a) { return b.all_gather_single(a.other, a.tensor, a.allgather); });
  gives("all_gather_single_coalesced",
        [](B& b, A& a) { return b.all_gather_single_coalesced(a.others, a.tensors, a.allgather); });
  gives("gather_single", [](B& b, A& a) { return b.gather_single(a.other, a.tensor, a.gather); });
  gives("gather_into_tensor", [](B& b, A& a) { return b.gather_into_tensor(a.other, a.tensor, a.gather); });
  gives("reduce_scatter_single",
        [](B& b, A& a) { return b.reduce_scatter_single(a.tensor, a.other, a.reduceScatter); });
  gives("reduce_scatter_single_coalesced",
        [](B& b, A& a) { return b.reduce_scatter_single_coalesced(a.tensors, a.others, a.reduceScatter); });
  gives("all_to_all_single",
        [](B& b, A& a) { return b.all_to_all_single(a.other, a.tensor, a.outputSplits, a.inputSplits, a.alltoall); });
  gives("getBoundDeviceId", [](B& b, A&) { return b.getBoundDeviceId(); });
  does("setBoundDeviceId", [](B& b, A&) { b.setBoundDeviceId(at::Device(at::kCUDA, 2)); });
  does("addEphemeralTimeout", [](B& b, A&) { b.addEphemeralTimeout(A::kTimeout); });
  gives("get_reconfigure_handle", [](B& b, A&) { return b.get_reconfigure_handle(); });
  gives("reconfigure", [](B& b, A& a) { return b.reconfigure(a.reconfigure); });
  gives("new_window", [](B& b, A& a) { return b.new_window(a.tensor); });
  hooks("registerAbortHook", [](B& b, auto heard) { b.registerAbortHook(6, [heard] { ++*heard; }); });
  does("unregisterAbortHook", [](B& b, A&) { b.unregisterAbortHook(6); });
#endif
#if STRAGGLER_TORCH >= 215
  gives("isInitialized", [](B& b, A&) { return b.isInitialized(); });
  gives("supportsAbortHooks", [](B& b, A&) { return b.supportsAbortHooks(); });
  gives("supportsCompletionHooks", [](B& b, A&) { return b.supportsCompletionHooks(); });
  does("startTimeEstimate", [](B& b, A&) { b.startTimeEstimate(); });
  gives("endTimeEstimate", [](B& b, A&) { return b.endTimeEstimate(); });
  hooks("registerCompletionHook",
        [](B& b, auto heard) { b.registerCompletionHook(8, [heard](const auto&) { ++*heard; }); });
  does("unregisterCompletionHook", [](B& b, A&) { b.unregisterCompletionHook(8); });
#endif
  return all;
}

}  // namespace straggler
