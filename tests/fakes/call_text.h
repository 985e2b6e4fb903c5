// CallText: a c10d call as one line of text, so that two calls can be compared. A tensor is its memory, an object its
// address, an options struct its fields: the texts are equal if the arguments are.
//
//   CallText::of("send", tensors, 1, 7)  ->  send([0x5581c0], 1, 7)
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "backend/c10d/torch_version.h"

namespace straggler {

class CallText {
 public:
  template <class... Args>
  static std::string of(const std::string& method, const Args&... args) {
    return method + list("(", ")", std::vector<std::string>{text(args)...});
  }

 private:
  static std::string list(const char* begin, const char* end, const std::vector<std::string>& items) {
    std::string joined = begin;
    for (const auto& item : items) {
      joined += (&item == items.data() ? "" : ", ") + item;
    }
    return joined + end;
  }

  // ---- Values ----

  template <class T>
  requires std::integral<T> || std::floating_point<T>
  static std::string text(T value) { return std::to_string(value); }
  static std::string text(const std::string& value) { return "'" + value + "'"; }
  static std::string text(const void* address) {
    std::ostringstream out;
    out << address;
    return out.str();
  }
  static std::string text(std::chrono::milliseconds value) { return std::to_string(value.count()) + " ms"; }
  static std::string text(c10::Device device) { return device.str(); }
  static std::string text(const at::Tensor& tensor) { return text(tensor.defined() ? tensor.data_ptr() : nullptr); }
  static std::string text(const at::TensorOptions& options) {
    return c10::toString(options.dtype().toScalarType()) + (" on " + options.device().str());
  }
  template <class T>
  static std::string text(const c10::intrusive_ptr<T>& object) {
    return text(static_cast<const void*>(object.get()));
  }
  template <class T>
  static std::string text(const std::optional<T>& value) {
    return value ? text(*value) : "none";
  }
  template <class T>
  static std::string text(const std::vector<T>& values) {
    std::vector<std::string> items;
    for (const auto& value : values) {
      items.push_back(text(value));
    }
    return list("[", "]", items);
  }
  // A function cannot be compared: it is called by the fake.
  template <class T>
  static std::string text(const std::function<T>& function) {
    return function ? "a function" : "no function";
  }

  // ---- Options ----

  static std::string text(const c10d::ReduceOp& op) { return of("op", static_cast<int>(op.op_), op.supplement_); }
  static std::string text(const c10d::BroadcastOptions& o) {
    return of("options", o.rootRank, o.rootTensor, o.timeout, o.asyncOp);
  }
  static std::string text(const c10d::AllreduceOptions& o) {
    return of("options", o.reduceOp, o.timeout, o.asyncOp, o.sparseIndices);
  }
  static std::string text(const c10d::ReduceOptions& o) {
    return of("options", o.reduceOp, o.rootRank, o.rootTensor, o.timeout, o.asyncOp);
  }
  static std::string text(const c10d::AllgatherOptions& o) { return of("options", o.timeout, o.asyncOp); }
  static std::string text(const c10d::GatherOptions& o) { return of("options", o.rootRank, o.timeout, o.asyncOp); }
  static std::string text(const c10d::ScatterOptions& o) { return of("options", o.rootRank, o.timeout, o.asyncOp); }
  static std::string text(const c10d::ReduceScatterOptions& o) {
    return of("options", o.reduceOp, o.timeout, o.asyncOp);
  }
  static std::string text(const c10d::AllToAllOptions& o) { return of("options", o.timeout, o.asyncOp); }
  static std::string text(const c10d::BarrierOptions& o) {
    return of("options", o.device_ids, o.timeout, o.device, o.asyncOp);
  }
#if STRAGGLER_TORCH >= 214
  static std::string text(const c10d::ReconfigureOptions& o) {
    const auto* ordered = std::get_if<std::vector<c10d::ReconfigureHandle>>(&o.handles);
    std::vector<std::string> hints;
    for (const auto& [name, value] : std::map<std::string, std::string>(o.hints.begin(), o.hints.end())) {
      hints.push_back(name + "=" + value);
    }
    return of("options", o.uuid, ordered != nullptr ? *ordered : std::vector<c10d::ReconfigureHandle>(), o.timeout,
              hints);
  }
#endif
};

}  // namespace straggler
