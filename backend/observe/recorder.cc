#include "backend/observe/recorder.h"

#include <algorithm>

namespace straggler {
namespace {

// What is still open is unknown from now on.
void close(Operation& operation) {
  if (operation.arrival.pending()) {
    operation.arrival.source = StampSource::kHost;
  }
  for (Stamp* stamp : {&operation.issued, &operation.completed, &operation.waited, &operation.released}) {
    if (stamp->pending()) {
      *stamp = Stamp::unknown();
    }
  }
}

}  // namespace

void Recorder::addGroup(GroupId group) {
  const MutexLock lock(mutex_);
  nextSequence_.try_emplace(group, 0);
}

Ticket Recorder::enter(Operation operation) noexcept {
  const MutexLock lock(mutex_);
  if (isNumbered(operation.key.kind)) {
    const auto next = nextSequence_.find(operation.key.group);
    if (next == nextSequence_.end()) {
      return kNoTicket;
    }
    operation.key.sequence = next->second++;
    ++collectives_;
  }
  return ring_.push(operation).value_or(kNoTicket);
}

void Recorder::arrived(Ticket ticket, Stamp stamp) noexcept {
  const MutexLock lock(mutex_);
  Operation* operation = ring_.at(ticket);
  if (operation != nullptr && operation->arrival.pending()) {
    operation->arrival = stamp.known() ? stamp : Stamp{operation->arrival.time, StampSource::kHost};
  }
}

void Recorder::issued(Ticket ticket, Instant time) noexcept {
  const MutexLock lock(mutex_);
  if (Operation* operation = ring_.at(ticket)) {
    operation->issued = {time, StampSource::kHost};
  }
}

void Recorder::completed(Ticket ticket, Stamp stamp, bool failed) noexcept {
  const MutexLock lock(mutex_);
  Operation* operation = ring_.at(ticket);
  if (operation == nullptr || !operation->completed.pending()) {
    return;
  }
  operation->completed = stamp;
  operation->failed = failed;
  // A synchronous caller goes on when the operation completes.
  if (!operation->asynchronous && operation->released.pending()) {
    operation->released = stamp.known() ? Stamp{stamp.time, StampSource::kCompletion} : Stamp::unknown();
  }
}

void Recorder::failed(Ticket ticket) noexcept {
  const MutexLock lock(mutex_);
  if (Operation* operation = ring_.at(ticket)) {
    operation->failed = true;
    close(*operation);
  }
}

void Recorder::waiting(Ticket ticket, Instant time) noexcept {
  const MutexLock lock(mutex_);
  Operation* operation = ring_.at(ticket);
  if (operation != nullptr && operation->waited.pending()) {
    operation->waited = {time, StampSource::kHost};
  }
}

void Recorder::released(Ticket ticket, Stamp stamp) noexcept {
  const MutexLock lock(mutex_);
  Operation* operation = ring_.at(ticket);
  if (operation == nullptr || !operation->released.pending()) {
    return;
  }
  operation->released = stamp;
  // Where the Work tells of its completion in no other way, the end of the wait is all there is to know.
  if (operation->completed.pending() && !isNumbered(operation->key.kind)) {
    operation->completed = stamp;
  }
}

void Recorder::abandoned(Ticket ticket) noexcept {
  const MutexLock lock(mutex_);
  Operation* operation = ring_.at(ticket);
  if (operation == nullptr) {
    return;
  }
  if (operation->released.pending() && operation->graphTask == kNoGraphTask) {
    operation->released = Stamp::unknown();
  }
  if (operation->completed.pending() && !isNumbered(operation->key.kind)) {
    operation->completed = Stamp::unknown();
  }
}

void Recorder::graphTaskReleased(int graphTask, Instant time) noexcept {
  const MutexLock lock(mutex_);
  for (Ticket ticket = std::max(graphBegin_, ring_.begin()); ticket < ring_.end(); ++ticket) {
    Operation* operation = ring_.at(ticket);
    if (operation->graphTask == graphTask && operation->released.pending()) {
      operation->released = {time, StampSource::kGraphTask};
    }
  }
  // Backwards can nest, so an outer one's operations may stay open: only what is closed is passed over for good.
  graphBegin_ = std::max(graphBegin_, ring_.begin());
  for (; graphBegin_ < ring_.end(); ++graphBegin_) {
    const Operation* operation = ring_.at(graphBegin_);
    if (operation->graphTask != kNoGraphTask && operation->released.pending()) {
      return;
    }
  }
}

void Recorder::fetched(Fetch fetch) noexcept {
  const MutexLock lock(mutex_);
  fetches_.push(fetch);
}

void Recorder::take(std::vector<Operation>& out) {
  close(*ring_.front());
  out.push_back(*ring_.front());
  ring_.pop();
}

void Recorder::drain(std::vector<Operation>& out, std::size_t limit) {
  const MutexLock lock(mutex_);
  for (std::size_t taken = 0; taken < limit && ring_.size() > 0; ++taken) {
    if (!ring_.front()->settled() && ring_.size() <= std::min(kMaxHeldBack, ring_.capacity() / 2)) {
      return;
    }
    take(out);
  }
}

void Recorder::drainAll(std::vector<Operation>& out) {
  const MutexLock lock(mutex_);
  while (ring_.size() > 0) {
    take(out);
  }
}

void Recorder::drainFetches(std::vector<Fetch>& out) {
  const MutexLock lock(mutex_);
  for (; fetches_.size() > 0; fetches_.pop()) {
    out.push_back(*fetches_.front());
  }
}

bool Recorder::awaitsCompletion() const {
  const MutexLock lock(mutex_);
  for (Ticket ticket = ring_.begin(); ticket < ring_.end(); ++ticket) {
    if (ring_.at(ticket)->completed.pending()) {
      return true;
    }
  }
  return false;
}

std::uint64_t Recorder::collectives() const {
  const MutexLock lock(mutex_);
  return collectives_;
}

std::uint64_t Recorder::dropped() const {
  const MutexLock lock(mutex_);
  return ring_.refused();
}

}  // namespace straggler
