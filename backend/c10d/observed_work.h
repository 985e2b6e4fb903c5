// ObservedWork: the Work that an asynchronous call returns. It forwards every virtual method of Work.hpp to the inner
// Work (a test reads the installed header) and notes when its caller waits, and when the wait ends.
//
// Inside a backward too: DDP's reducer takes the Future and drops the Work, FSDP waits for the Work; either is seen.
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "backend/c10d/torch_version.h"
#include "backend/observe/ring_buffer.h"

namespace straggler {

class Observer;

class ObservedWork final : public c10d::Work {
 public:
  ObservedWork(c10::intrusive_ptr<c10d::Work> inner, std::shared_ptr<Observer> observer, Ticket ticket,
               c10::Device device);
  ~ObservedWork() override;

  // ---- Observed ----
  bool wait(std::chrono::milliseconds timeout) override;

  // ---- Forwarded ----
  bool isCompleted() override { return inner_->isCompleted(); }
  bool isSuccess() const override { return inner_->isSuccess(); }
  std::exception_ptr exception() const override { return inner_->exception(); }
  int sourceRank() const override { return inner_->sourceRank(); }
  std::vector<at::Tensor> result() override { return inner_->result(); }
  void synchronize() override { inner_->synchronize(); }
  void blockCurrentStream() override { inner_->blockCurrentStream(); }
  void abort() override { inner_->abort(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return inner_->getFuture(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override { return inner_->getFutureResult(); }
  float getDuration() const override { return inner_->getDuration(); }
  uint64_t getSequencenumber() const override { return inner_->getSequencenumber(); }
#if STRAGGLER_TORCH >= 215
  std::chrono::milliseconds getTimeout() const override { return inner_->getTimeout(); }
  uint64_t getCompletionKey() const override { return inner_->getCompletionKey(); }
#endif

 private:
  c10::intrusive_ptr<c10d::Work> inner_;
  std::shared_ptr<Observer> observer_;
  Ticket ticket_;
  c10::Device device_;
};

}  // namespace straggler
