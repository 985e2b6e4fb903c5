#include "backend/c10d/input_probe.h"

#include <exception>
#include <new>
#include <optional>
#include <string_view>

#include <ATen/record_function.h>

#include "backend/base/process_bound.h"

namespace straggler {
namespace {

struct Watched {
  std::weak_ptr<Recorder> recorder;
  ProcessBound origin;

  bool alive() const noexcept { return origin.here() && !recorder.expired(); }
};
thread_local std::optional<Watched> watched;

struct Begun final : at::ObserverContext {
  Instant begin;
};

bool isFetch(const at::RecordFunction& scope) noexcept {
  return std::string_view(scope.name()).starts_with("enumerate(DataLoader)#");
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& scope) {
  if (!watched || !watched->alive() || !isFetch(scope)) {
    return nullptr;
  }
  auto* begun = new (std::nothrow) Begun;
  if (begun != nullptr) {
    begun->begin = SteadyClock().now();
  }
  return std::unique_ptr<at::ObserverContext>(begun);
}

void end(const at::RecordFunction& /*scope*/, at::ObserverContext* context) {
  const auto* begun = static_cast<const Begun*>(context);
  if (begun == nullptr || !watched || !watched->origin.here()) {
    return;
  }
  if (const auto recorder = watched->recorder.lock()) {
    recorder->fetched({begun->begin, SteadyClock().now()});
  }
}

}  // namespace

void InputProbe::watch(const std::shared_ptr<Recorder>& recorder) noexcept {
  try {
    static const at::CallbackHandle added = at::addGlobalCallback(
        at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::USER_SCOPE}).needsInputs(false));
    (void)added;
    watched = Watched{recorder, ProcessBound()};
  } catch (const std::exception&) {
    // No memory: this thread's fetches are not seen, and its input time stays unknown.
  }
}

}  // namespace straggler
