#include "backend/c10d/observer.h"

#include <exception>
#include <utility>

#include "backend/c10d/observed_work.h"

namespace straggler {

// The training thread is the one that makes the process's first call: other threads that use collectives (an asynchronous
// checkpoint's, say) come later.
bool Observer::onTrainingThread() noexcept {
  const auto self = std::this_thread::get_id();
  std::thread::id none;
  return trainingThread_.compare_exchange_strong(none, self) || none == self;
}

Ticket Observer::enter(GroupId group, const Call& call) noexcept {
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
    deviceTimer_.mark(call.device, [recorder = recorder_, ticket](Stamp stamp) { recorder->arrived(ticket, stamp); });
  }
  if (operation.graphTask != kNoGraphTask) {
    releaseProbe_.arm(operation.graphTask,
                      [self = shared_from_this(), task = operation.graphTask, device = call.device] {
                        if (device.is_cpu()) {
                          self->recorder_->graphTaskReleased(task, self->clock_.now());
                          return;
                        }
                        self->deviceTimer_.mark(device, [recorder = self->recorder_, task](Stamp stamp) {
                          if (stamp.known()) {
                            recorder->graphTaskReleased(task, stamp.time);
                          }
                        });
                      });
  }
  return ticket;
}

c10::intrusive_ptr<c10d::Work> Observer::issued(Ticket ticket, const Call& call,
                                                c10::intrusive_ptr<c10d::Work> work) noexcept {
  recorder_->issued(ticket, clock_.now());
  if (ticket == kNoTicket) {
    return work;
  }
  if (!work) {
    // There is nothing to wait for: the call itself was all, or the caller's stream now waits for it.
    if (call.device.is_cpu()) {
      recorder_->completed(ticket, {clock_.now(), StampSource::kHost}, false);
    } else {
      deviceTimer_.mark(call.device,
                        [recorder = recorder_, ticket](Stamp stamp) { recorder->completed(ticket, stamp, false); });
    }
    return work;
  }
  if (isNumbered(call.kind)) {
    watchCompletion(ticket, work);
  }
  if (!call.asynchronous) {
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

void Observer::watchCompletion(Ticket ticket, const c10::intrusive_ptr<c10d::Work>& work) noexcept {
  if (worksHaveFutures_ && watchByFuture(ticket, *work)) {
    return;
  }
  try {
    const MutexLock lock(mutex_);
    polled_.push_back({ticket, work});
  } catch (const std::exception&) {
    recorder_->completed(ticket, Stamp::unknown(), false);
  }
}

// A Future on the CPU is completed by the thread that ends the operation. A device's is completed when the operation is
// issued, and tells nothing.
bool Observer::watchByFuture(Ticket ticket, c10d::Work& work) noexcept {
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
    worksHaveFutures_ = false;  // asking again would throw again, and throwing is slow
    return false;
  }
}

bool Observer::poll() noexcept {
  const bool open = deviceTimer_.poll(clock_);
  std::deque<Polled> waiting;
  {
    const MutexLock lock(mutex_);
    waiting.swap(polled_);
  }
  std::deque<Polled> left;
  for (auto& polled : waiting) {
    try {
      if (!polled.work->isCompleted()) {
        left.push_back(std::move(polled));
        continue;
      }
      recorder_->completed(polled.ticket, {clock_.now(), StampSource::kPoll}, !polled.work->isSuccess());
    } catch (const std::exception&) {
      recorder_->completed(polled.ticket, Stamp::unknown(), true);
    }
  }
  const MutexLock lock(mutex_);
  polled_.insert(polled_.begin(), std::make_move_iterator(left.begin()), std::make_move_iterator(left.end()));
  return open || !polled_.empty();
}

// ---- Release ----

void Observer::waiting(Ticket ticket, c10::Device device) noexcept {
  if (device.is_cpu()) {
    recorder_->waiting(ticket, clock_.now());
    return;
  }
  deviceTimer_.mark(device, [recorder = recorder_, ticket](Stamp stamp) {
    if (stamp.known()) {
      recorder->waiting(ticket, stamp.time);
    }
  });
}

void Observer::released(Ticket ticket, c10::Device device) noexcept {
  if (device.is_cpu()) {
    recorder_->released(ticket, {clock_.now(), StampSource::kWait});
    return;
  }
  // On a device the host goes on at once; it is the stream that waits.
  deviceTimer_.mark(device, [recorder = recorder_, ticket](Stamp stamp) {
    recorder->released(ticket, stamp.known() ? Stamp{stamp.time, StampSource::kWait} : stamp);
  });
}

void Observer::abandoned(Ticket ticket) noexcept { recorder_->abandoned(ticket); }

}  // namespace straggler
