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

// What the engine's callbacks throw becomes the error of the user's backward. Ours throw nothing: the release of that
// backward then stays unknown.
template <class Work>
void quietly(const Work& work) noexcept {
  try {
    work();
  } catch (const std::exception&) {
  }
}

}  // namespace

int ReleaseProbe::currentGraphTask() noexcept {
  const int task = torch::autograd::get_current_graph_task_id();
  return task < 0 ? kNoGraphTask : task;
}

void ReleaseProbe::atEnd(std::function<void()> released) noexcept {
  quietly(
      [&] { queue([released = std::move(released)] { quietly([&] { queue([released] { quietly(released); }); }); }); });
}

}  // namespace straggler
