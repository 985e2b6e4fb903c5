#include "backend/c10d/release_probe.h"

#include <exception>
#include <utility>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include "backend/observe/operation.h"

namespace straggler {
namespace {

void queue(std::function<void()> callback) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(callback));
}

}  // namespace

int ReleaseProbe::currentGraphTask() noexcept {
  const int task = torch::autograd::get_current_graph_task_id();
  return task < 0 ? kNoGraphTask : task;
}

void ReleaseProbe::atEnd(std::function<void()> released) noexcept {
  try {
    queue([released = std::move(released)] { queue(released); });
  } catch (const std::exception&) {
    // The release of this backward stays unknown.
  }
}

}  // namespace straggler
