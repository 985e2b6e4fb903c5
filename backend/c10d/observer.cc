#include "backend/c10d/observer.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "backend/c10d/input_probe.h"
#include "backend/c10d/observed_work.h"

namespace straggler {
namespace {

// Where there is no memory to keep `reached`, it is called at once, with an unknown stamp.
template <class Reached>
void mark(DeviceTimer& timer, c10::Device device, const Reached& reached) noexcept {
  DeviceMarks::Reached kept;
  try {
    kept = reached;
  } catch (const std::exception&) {
    return reached(Stamp::unknown());
  }
  timer.mark(device, std::move(kept));
}

}  // namespace

// The training thread is the one that makes the process's first call: other threads that use collectives (an asynchronous
// checkpoint's, say) come later.
bool Observer::onTrainingThread() noexcept {
  const auto self = std::this_thread::get_id();
  std::thread::id none;
  if (!trainingThread_.compare_exchange_strong(none, self)) {
    return none == self;
  }
  recorder_->setTrainingThread(gettid());
  InputProbe::watch(recorder_);
  return true;
}

Ticket Observer::enter(GroupId group, const Call& call) noexcept {
  if (!origin_.here()) {
    return kNoTicket;
  }
  if (DeviceTimer::isCapturing(call.device)) {
    recorder_->sawCapture();
    return kNoTicket;
  }
  Operation operation;
  operation.key.group = group;
  operation.key.kind = call.kind;
  operation.method = call.method;
  operation.dtype = call.dtype;
  operation.bytes = call.bytes;
  operation.asynchronous = call.asynchronous;
  operation.graphTask = ReleaseProbe::currentGraphTask();
  // A backward belongs to training, whichever of the engine's threads runs it.
  operation.trainingThread = operation.graphTask != kNoGraphTask || onTrainingThread();
  operation.arrival = {clock_.now(), call.device.is_cpu() ? StampSource::kHost : StampSource::kPending};
  const Ticket ticket = recorder_->enter(operation);
  if (!call.device.is_cpu() && ticket != kNoTicket) {
    mark(deviceTimer_, call.device, [recorder = recorder_, ticket](Stamp stamp) { recorder->arrived(ticket, stamp); });
  }
  if (operation.graphTask != kNoGraphTask && releaseProbe_.isFirst(operation.graphTask)) {
    watchBackward(operation.graphTask, call.device);
  }
  return ticket;
}

void Observer::watchBackward(int graphTask, c10::Device device) noexcept {
  std::function<void()> released;
  try {
    released = [self = shared_from_this(), graphTask, device] { self->backwardReturned(graphTask, device); };
  } catch (const std::exception&) {
    return;  // no memory: the release of this backward stays unknown
  }
  ReleaseProbe::atEnd(std::move(released));
}

void Observer::backwardReturned(int graphTask, c10::Device device) noexcept {
  if (device.is_cpu()) {
    recorder_->graphTaskReleased(graphTask, clock_.now());
    return;
  }
  mark(deviceTimer_, device, [recorder = recorder_, graphTask](Stamp stamp) {
    if (stamp.known()) {
      recorder->graphTaskReleased(graphTask, stamp.time);
    }
  });
}

c10::intrusive_ptr<c10d::Work> Observer::issued(Ticket ticket, const Call& call,
                                                c10::intrusive_ptr<c10d::Work> work) noexcept {
  if (ticket == kNoTicket) {
    return work;
  }
  recorder_->issued(ticket, clock_.now());
  if (!work) {
    // There is nothing to wait for: the call itself was all, or the caller's stream now waits for it. When the caller of
    // an asynchronous operation goes on is not known.
    const auto closed = [recorder = recorder_, ticket](Stamp completion) {
      recorder->completed(ticket, completion, false);
      recorder->abandoned(ticket);
    };
    if (call.device.is_cpu()) {
      closed({clock_.now(), StampSource::kHost});
    } else {
      mark(deviceTimer_, call.device, closed);
    }
    return work;
  }
  const bool tells = !isNumbered(call.kind) || watchCompletion(ticket, call, work);
  if (!call.asynchronous && tells) {
    return work;
  }
  try {
    return c10::make_intrusive<ObservedWork>(std::move(work), shared_from_this(), ticket, call.device);
  } catch (const std::exception&) {
    abandoned(ticket);  // no memory: the caller gets the inner Work, and its release stays unknown
    return work;
  }
}

// ---- Completion ----

bool Observer::watchCompletion(Ticket ticket, const Call& call, const c10::intrusive_ptr<c10d::Work>& work) noexcept {
  if (watchByFuture(ticket, call.kind, *work)) {
    return true;
  }
  if (pollLater({ticket, work, call.device.is_cpu()})) {
    return !call.device.is_cpu();
  }
  recorder_->completed(ticket, Stamp::unknown(), false);
  return true;
}

bool Observer::pollLater(Polled polled) noexcept {
  try {
    const MutexLock lock(mutex_);
    if (polled_.size() < kMaxPolled) {
      polled_.push_back(std::move(polled));
      return true;
    }
  } catch (const std::exception&) {  // no memory
  }
  return false;
}

// A Future on the CPU is completed by the thread that ends the operation. A device's is completed when the operation is
// issued, and tells nothing.
bool Observer::watchByFuture(Ticket ticket, OpKind kind, c10d::Work& work) noexcept {
  auto& withoutFuture = withoutFuture_.at(static_cast<std::size_t>(kind));
  if (withoutFuture) {
    return false;
  }
  try {
    const auto future = work.getFuture();
    if (!future || !future->devices().empty()) {
      return false;
    }
    future->addCallback(
        [recorder = recorder_, ticket](c10::ivalue::Future& done) {
          recorder->completed(ticket, {SteadyClock().now(), StampSource::kFuture}, done.hasError());
        },
        /*uses_future=*/false);
    return true;
  } catch (const std::exception&) {
    withoutFuture = true;  // asking again would throw again, and throwing is slow
    return false;
  }
}

bool Observer::poll() noexcept {
  const bool open = deviceTimer_.poll(clock_);
  try {
    std::vector<Polled> looked;  // destroyed without the lock: what a Work holds may take others
    std::vector<Ticket> done;
    {
      const MutexLock lock(mutex_);
      looked = polled_;
    }
    for (const auto& polled : looked) {
      if (isDone(polled)) {
        done.push_back(polled.ticket);
      }
    }
    const MutexLock lock(mutex_);
    std::erase_if(polled_, [&](const Polled& polled) {
      return std::find(done.begin(), done.end(), polled.ticket) != done.end();
    });
    return open || !polled_.empty();
  } catch (const std::exception&) {
    return true;  // no memory: later
  }
}

bool Observer::isDone(const Polled& polled) noexcept {
  try {
    if (!polled.work->isCompleted()) {
      return false;
    }
    recorder_->completed(polled.ticket, {clock_.now(), StampSource::kPoll}, !polled.work->isSuccess());
  } catch (const std::exception&) {
    recorder_->completed(polled.ticket, Stamp::unknown(), true);
  }
  return true;
}

bool Observer::letGo(Ticket ticket) noexcept {
  Polled found;  // destroyed without the lock
  const MutexLock lock(mutex_);
  const auto place = std::find_if(polled_.begin(), polled_.end(),
                                  [ticket](const Polled& polled) { return polled.onCpu && polled.ticket == ticket; });
  if (place == polled_.end()) {
    return false;
  }
  found = std::move(*place);
  polled_.erase(place);
  return true;
}

// ---- Release ----

void Observer::failed(Ticket ticket) noexcept {
  if (ticket != kNoTicket) {
    recorder_->failed(ticket);
  }
}

void Observer::waiting(Ticket ticket, c10::Device device) noexcept {
  if (!origin_.here()) {
    return;
  }
  if (device.is_cpu()) {
    recorder_->waiting(ticket, clock_.now());
    return;
  }
  mark(deviceTimer_, device, [recorder = recorder_, ticket](Stamp stamp) {
    if (stamp.known()) {
      recorder->waiting(ticket, stamp.time);
    }
  });
}

void Observer::released(Ticket ticket, c10::Device device) noexcept {
  if (!origin_.here()) {
    return;
  }
  if (device.is_cpu()) {
    const Stamp end{clock_.now(), StampSource::kWait};
    if (letGo(ticket)) {
      recorder_->completed(ticket, end, false);
    }
    recorder_->released(ticket, end);
    return;
  }
  // On a device the host goes on at once; it is the stream that waits.
  mark(deviceTimer_, device, [recorder = recorder_, ticket](Stamp stamp) {
    recorder->released(ticket, stamp.known() ? Stamp{stamp.time, StampSource::kWait} : stamp);
  });
}

void Observer::abandoned(Ticket ticket) noexcept {
  if (!origin_.here()) {
    return;
  }
  if (letGo(ticket)) {
    recorder_->completed(ticket, Stamp::unknown(), false);
  }
  recorder_->abandoned(ticket);
}

}  // namespace straggler
