#include "backend/mitigate/engine.h"

#include <algorithm>
#include <utility>

namespace straggler {
namespace {

constexpr std::uint64_t kLongestOverrunUs = 3'600'000'000;  // an hour: what is told is not trusted

}  // namespace

// ---- Main thread ----

Engine::Arrival Engine::arrive(const SlotOperation& operation, Instant now) {
  const Slot slot = main_;
  if (slot == filled_ && reserved_) {
    return Wait{};
  }
  steps_.arrived(operation, unreadOf_, options_.staleness);
  if (slot == filled_) {
    ++main_;
    ++filled_;
    remember(slot, operation);
    waiting_.push_back({slot, now, std::nullopt});
    requests_.erase(requests_.begin(), requests_.lower_bound(filled_));
    if (!operation.bucket) {
      learn(operation);
      return Issue{slot, false};
    }
    pace(*operation.bucket, now);
    ++brought_[*operation.bucket];
    ledger_.onTime(*operation.bucket);
    return Issue{slot, contribute(*operation.bucket)};
  }
  const Entry entry = log_.front();
  if (!operation.isCallOf(entry.operation)) {
    return Fail{"slot " + std::to_string(slot) +
                " was filled for this rank with another operation than the one it makes: "
                "the ranks of the group run different programs"};
  }
  ++main_;
  log_.pop_front();
  reached(now);
  if (!entry.operation.bucket) {
    return Take{slot, 0, false};
  }
  const BucketId bucket = *entry.operation.bucket;
  pace(bucket, now);
  --unreadOf_[bucket];
  unreadBytes_ -= entry.operation.bytes;
  const std::uint64_t number = brought_[bucket]++;
  if (options_.mode == MitigationMode::kDrop) {
    ledger_.dropped(bucket);
    return Take{slot, bucket, false};
  }
  ledger_.owed(bucket, number);
  return Take{slot, bucket, true};
}

void Engine::reached(Instant now) {
  if (filledSince_) {
    overrun_ = now - *filledSince_;
    saved_ += overrun_;
    filledSince_.reset();
  }
  tellCaughtUp_ = main_ == filled_;
}

// The rank contributes to the next slot of the bucket; says whether what it owes goes with it.
bool Engine::contribute(BucketId bucket) { return ledger_.carried(bucket, contributed_[bucket]++); }

// What the main thread has made once, the proxy can make too: the carrier knows how.
void Engine::learn(const SlotOperation& operation) {
  if (operation.kind == SlotOperation::Kind::kBroadcast && seen_.size() < kHistory) {
    seen_.insert(operation);
  }
}

void Engine::remember(Slot slot, const SlotOperation& operation) {
  history_.push_back({slot, operation});
  if (history_.size() > kHistory) {
    history_.pop_front();
  }
}

// A step is what passes between two calls of the same bucket; a stall is longer, and counts like three steps at most.
void Engine::pace(BucketId bucket, Instant now) {
  const auto [last, first] = lastOfBucket_.try_emplace(bucket, now);
  if (first) {
    return;
  }
  const Duration took = now - std::exchange(last->second, now);
  step_ = step_ == Duration{} ? took : (7 * step_ + std::min(took, 3 * step_)) / 8;
  grace_.stepTakes(step_);
}

// ---- Proxy ----

void Engine::requested(const JoinRequest& request) {
  if (request.slots.operations.empty() || request.slots.first() > request.slots.last) {
    return;  // of no one of ours
  }
  if (request.slots.last < filled_) {
    // The rank is further than the coordinator knows.
    tellCaughtUp_ = tellCaughtUp_ || !isBehind();
    if (options_.mode == MitigationMode::kDrop && answers_.size() < kHistory) {
      answers_.push_back({options_.rank, request.slots.last, reservations_.contains(request.slots.last)});
    }
    return;
  }
  Slot slot = request.slots.first();
  for (const SlotOperation& operation : request.slots.operations) {
    if (slot >= filled_ && requests_.size() < kMaxRequested) {
      requests_.emplace(slot, operation);
    }
    ++slot;
  }
}

std::optional<Engine::Fill> Engine::nextFill(Instant now) {
  if (reserved_) {
    return go_ ? std::optional(fill(*reserved_, reservedOperation_)) : std::nullopt;
  }
  const auto next = requests_.find(filled_);
  if (next == requests_.end() || !mayFill(next->second)) {
    return std::nullopt;
  }
  const SlotOperation operation = next->second;
  requests_.erase(next);
  if (!isBehind()) {
    filledSince_ = now;
  }
  const Slot slot = filled_++;
  ++filledByProxy_;
  log_.push_back({slot, operation});
  remember(slot, operation);
  if (operation.bucket) {
    ++unreadOf_[*operation.bucket];
    unreadBytes_ += operation.bytes;
  }
  if (operation.bucket && options_.mode == MitigationMode::kDrop) {
    reserve(slot, operation);
    return std::nullopt;
  }
  return fill(slot, operation);
}

Engine::Fill Engine::fill(Slot slot, const SlotOperation& operation) {
  const std::uint32_t participants = go_ ? go_->participants : 0;
  reserved_.reset();
  go_.reset();
  return Fill{slot, operation, operation.bucket && contribute(*operation.bucket), participants};
}

void Engine::reserve(Slot slot, const SlotOperation& operation) {
  reserved_ = slot;
  reservedOperation_ = operation;
  reservations_.insert(slot);
  if (reservations_.size() > kHistory) {
    reservations_.erase(reservations_.begin());
  }
  answers_.push_back({options_.rank, slot, true});
}

void Engine::heard(const Go& go) {
  if (reserved_ == go.slot) {
    go_ = go;
  }
}

void Engine::heard(const Announcement& announcement) {
  const auto waits = [&announcement](const Waiting& waiting) { return waiting.slot == announcement.slot; };
  if (std::any_of(waiting_.begin(), waiting_.end(), waits)) {
    participants_[announcement.slot] = announcement.participants;
    acknowledgements_.push_back({options_.rank, announcement.slot});
  }
}

std::uint32_t Engine::participantsOf(Slot slot) {
  const auto known = participants_.find(slot);
  const std::uint32_t participants = known == participants_.end() ? 0 : known->second;
  participants_.erase(participants_.begin(), participants_.upper_bound(slot));
  return participants;
}

bool Engine::mayFill(const SlotOperation& operation) const {
  if (!standing_ || steps_.isPersistent() || !operation.canBeJoinedBy(options_.rank)) {
    return false;
  }
  if (!operation.bucket) {
    return seen_.contains(operation) && log_.size() < kMaxRequested;
  }
  if (!contributed_.contains(*operation.bucket)) {
    return false;
  }
  const auto unread = unreadOf_.find(*operation.bucket);
  const std::uint64_t steps = unread == unreadOf_.end() ? 0 : unread->second;
  return steps < options_.staleness && unreadBytes_ + operation.bytes <= options_.maxBytes &&
         static_cast<std::int64_t>(steps + 1) * step_ <= options_.maxBacklog;
}

// ---- Waiting ----

// A wait that was cut short, since another rank's slot was filled, counts once it is known how long it would have been.
void Engine::completed(Slot slot, Instant now) {
  for (; !waiting_.empty() && waiting_.front().slot <= slot; waiting_.pop_front()) {
    const Duration wait = now - waiting_.front().since;
    if (othersBehind_ && waiting_.front().told && !cutShort_) {
      cutShort_ = wait;
    } else if (!othersBehind_) {
      grace_.waited(wait);
    }
  }
}

void Engine::heard(const Behind& behind) {
  othersBehind_ = behind.any;
  if (!behind.any && cutShort_) {
    const auto overrun = std::chrono::microseconds(std::min(behind.overrunUs, kLongestOverrunUs));
    grace_.waited(*std::exchange(cutShort_, std::nullopt) + overrun);
  }
}

Engine::Tell Engine::tell(Instant now) {
  Tell result;
  if (std::exchange(tellCaughtUp_, false)) {
    const auto overrun = std::chrono::duration_cast<std::chrono::microseconds>(std::exchange(overrun_, Duration{}));
    result.caughtUp = CaughtUp{options_.rank, main_, static_cast<std::uint64_t>(overrun.count())};
  }
  if (toldPersistent_ != steps_.isPersistent()) {
    toldPersistent_ = !toldPersistent_;
    result.refusal = Refusal{options_.rank, toldPersistent_};
  }
  result.reservations = std::exchange(answers_, {});
  result.acknowledgements = std::exchange(acknowledgements_, {});
  result.pending = report(now);
  return result;
}

// Of the oldest that waits alone: those behind it cannot be complete before it is. What was begun is gone on with: an
// agreement whose messages were lost must not stop half-way.
std::optional<PendingReport> Engine::report(Instant now) {
  if (waiting_.empty()) {
    return std::nullopt;
  }
  Waiting& oldest = waiting_.front();
  const std::optional<Duration> grace = options_.grace ? options_.grace : grace_.value();
  const bool beyondGrace = grace && now - oldest.since >= *grace;
  if (!oldest.told) {
    if (!standing_ || steps_.exactInEveryStep() || !(beyondGrace || (grace && othersBehind_))) {
      return std::nullopt;
    }
  } else if (now - *oldest.told < kRepeat && !(beyondGrace && *oldest.told - oldest.since < *grace)) {
    return std::nullopt;
  }
  oldest.told = now;
  return PendingReport{options_.rank, beyondGrace, described(oldest.slot)};
}

SlotRange Engine::described(Slot last) const {
  SlotRange range{last, {}};
  for (const Entry& entry : history_) {
    if (entry.slot <= last) {
      range.operations.push_back(entry.operation);
    }
  }
  return range;
}

}  // namespace straggler
