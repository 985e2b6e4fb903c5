// ChainedWork: done when another Work is, and something was done to its result before: a logged result copied to the user's
// tensor, a sum scaled. It fails as the other fails. The other may also come later: until then it is only promised.
//
// Whoever waits for the other in the inner backend is not the caller: its thread goes on.
#pragma once

#include <exception>
#include <functional>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace straggler {

class ChainedWork final : public c10d::Work {
 public:
  // `finish` runs on the thread that completes `before`, if it succeeds. `outputs` are the user's tensors.
  static c10::intrusive_ptr<c10d::Work> after(const c10::intrusive_ptr<c10d::Work>& before,
                                              std::vector<at::Tensor> outputs, std::function<void()> finish);

  ChainedWork(c10d::OpType type, std::vector<at::Tensor> outputs);

  // One of the two, once.
  void follow(const c10::intrusive_ptr<c10d::Work>& before, std::function<void()> finish);
  void fail(const std::exception_ptr& error) { end(error); }

  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  void end(const std::exception_ptr& error);

  std::vector<at::Tensor> outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace straggler
