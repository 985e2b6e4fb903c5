// RecordingWork: a Work that a test completes. It keeps what is asked of it, and answers each question in its own way.
#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "backend/c10d/torch_version.h"
#include "tests/fakes/call_text.h"

namespace straggler {

class RecordingWork : public c10d::Work {
 public:
  using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;

  explicit RecordingWork(std::uint64_t number = 0) : Work(-1, c10d::OpType::ALLREDUCE), number_(number) {}

  static FuturePtr makeFuture() { return c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get()); }

  // ---- What the test sets ----
  bool completed = false;
  bool successful = true;
  std::exception_ptr error;   // what exception() gives
  std::exception_ptr throws;  // what every call throws
  FuturePtr future;           // null: asking for it throws, as where a Work has none
  FuturePtr futureResult = makeFuture();
  std::vector<at::Tensor> tensors;

  // ---- What the test reads ----
  mutable std::vector<std::string> calls;
  std::chrono::steady_clock::time_point lastWait;

  // ---- Work ----
  bool isCompleted() override { return note("isCompleted"), completed; }
  bool isSuccess() const override { return note("isSuccess"), successful; }
  std::exception_ptr exception() const override { return note("exception"), error; }
  int sourceRank() const override { return note("sourceRank"), 5; }
  std::vector<at::Tensor> result() override { return note("result"), tensors; }
  void synchronize() override { note("synchronize"); }
  bool wait(std::chrono::milliseconds timeout) override {
    lastWait = std::chrono::steady_clock::now();
    note("wait", timeout);
    return successful;
  }
  void blockCurrentStream() override { note("blockCurrentStream"); }
  void abort() override { note("abort"); }
  FuturePtr getFuture() override {
    note("getFuture");
    return future ? future : Work::getFuture();
  }
  FuturePtr getFutureResult() override { return note("getFutureResult"), futureResult; }
  float getDuration() const override { return note("getDuration"), 1.5F; }
  uint64_t getSequencenumber() const override { return note("getSequencenumber"), number_; }
#if STRAGGLER_TORCH >= 215
  std::chrono::milliseconds getTimeout() const override { return note("getTimeout"), std::chrono::milliseconds(1234); }
  uint64_t getCompletionKey() const override { return note("getCompletionKey"), 99; }
#endif

 private:
  template <class... Args>
  void note(const char* method, const Args&... args) const {
    calls.push_back(CallText::of(method, args...));
    if (throws) {
      std::rethrow_exception(throws);
    }
  }

  std::uint64_t number_;
};

}  // namespace straggler
