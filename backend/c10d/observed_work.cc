#include "backend/c10d/observed_work.h"

#include <utility>

#include "backend/c10d/observer.h"

namespace straggler {

ObservedWork::ObservedWork(c10::intrusive_ptr<c10d::Work> inner, std::shared_ptr<Observer> observer, Ticket ticket,
                           c10::Device device)
    : Work(-1, inner->retrieveOpType()),
      inner_(std::move(inner)),
      observer_(std::move(observer)),
      ticket_(ticket),
      device_(device) {}

ObservedWork::~ObservedWork() { observer_->abandoned(ticket_); }

// An exception passes untouched; the release is then not known.
bool ObservedWork::wait(std::chrono::milliseconds timeout) {
  observer_->waiting(ticket_, device_);
  const bool done = inner_->wait(timeout);
  observer_->released(ticket_, device_);
  return done;
}

}  // namespace straggler
