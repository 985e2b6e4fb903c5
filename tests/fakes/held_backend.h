// HeldBackend: an inner backend whose all_reduces and broadcasts are done when the test says so, with the result that it gives.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "tests/fakes/recording_work.h"

namespace straggler {

class HeldBackend final : public c10d::Backend {
 public:
  explicit HeldBackend(int rank = 0, int size = 4) : Backend(rank, size) {}

  struct Issued {
    at::Tensor tensor;  // shares the caller's storage
    at::Tensor contribution;
    c10::intrusive_ptr<RecordingWork> work;
  };
  std::vector<Issued> issued;
  bool refuses = false;

  void complete(std::size_t index, double result) {
    issued.at(index).tensor.fill_(result);
    issued.at(index).work->completed = true;
    issued.at(index).work->future->markCompleted(c10::IValue());
  }
  void fail(std::size_t index, const std::string& why) {
    issued.at(index).work->completed = true;
    issued.at(index).work->future->setError(std::make_exception_ptr(std::runtime_error(why)));
  }

  const std::string getBackendName() const override { return "held"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    return issue(tensors);
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions&) override {
    return issue(tensors);
  }

 private:
  c10::intrusive_ptr<c10d::Work> issue(std::vector<at::Tensor>& tensors) {
    if (refuses) {
      throw std::runtime_error("the inner refuses");
    }
    auto work = c10::make_intrusive<RecordingWork>();
    work->future = RecordingWork::makeFuture();
    issued.push_back({tensors.front(), tensors.front().clone(), work});
    return work;
  }
};

}  // namespace straggler
