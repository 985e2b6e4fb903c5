#include "backend/mitigate/engine.h"

#include <algorithm>
#include <utility>

namespace straggler {
namespace {

constexpr std::uint64_t kLongestOverrunUs = 3'600'000'000;  // an hour: what is told is not trusted
constexpr std::size_t kPaces = 16;                          // intervals between two calls of a bucket
// A stall may yet become so many times as long as it is, and in each step of a lead again. With a lead of k slots begun in a
// stall of length e, k * 4e <= T / 4: so the others wait for less than T for all of it as long as the stalls last less than 16e.
constexpr int kStallGrows = 4;
constexpr Duration kLookSoonest = std::chrono::microseconds(500);
constexpr Duration kLookLatest = std::chrono::milliseconds(5);

}  // namespace

// ---- Main thread ----

Engine::Engine(Options options) : options_(std::move(options)) {
  if (options_.script) {
    script_ = options_.script->fills;
  }
}

Engine::Arrival Engine::arrive(const SlotOperation& operation, Instant now, const std::string& what) {
  if (!failure_.empty()) {
    return Fail{failure_};
  }
  const Slot slot = main_;
  if (slot == filled_ && reserved_) {
    return Wait{};
  }
  if (slot < filled_ && !operation.isCallOf(log_.front().operation)) {
    return fail("slot " + std::to_string(slot) + " was filled for this rank with another operation than " + what +
                ", which it makes: the ranks of the group run different programs");
  }
  if (!script_.empty() && script_.front().slot <= slot && slot == filled_) {
    return fail(
        "slot " + std::to_string(slot) +
        " was filled for this rank in the recorded run, and cannot be in this one: they run different programs");
  }
  count(operation, now, what);
  lastArrival_ = now;
  if (slot == filled_) {
    return issue(operation, now);
  }
  return take(now);
}

Engine::Fail Engine::fail(std::string reason) {
  failure_ = std::move(reason);
  standing_ = false;
  return Fail{failure_};
}

void Engine::count(const SlotOperation& operation, Instant now, const std::string& what) {
  if (operation.bucket == BucketId{0}) {
    steps_.step(isBehind() && isAtBound(0, operation.bytes, now));
  } else if (!operation.bucket && !operation.canBeJoinedBy(options_.rank)) {
    operation.kind == SlotOperation::Kind::kBroadcast ? steps_.rooted(what) : steps_.exact(what);
  }
}

Engine::Issue Engine::issue(const SlotOperation& operation, Instant now) {
  const Slot slot = main_++;
  ++filled_;
  remember(slot, operation);
  waiting_.push_back({slot, now, std::nullopt, isFlushing(operation)});
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

Engine::Take Engine::take(Instant now) {
  const Slot slot = main_++;
  const Entry entry = log_.front();
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

void Engine::flush() {
  flushed_.clear();
  for (const auto& [bucket, times] : contributed_) {
    flushing_.insert(bucket);
  }
}

// Whether the operation is one of those that a flush is made of.
bool Engine::isFlushing(const SlotOperation& operation) {
  if (flushing_.empty() || !operation.bucket) {
    return !flushing_.empty();
  }
  if (!flushed_.insert(*operation.bucket).second) {
    flushing_.clear();  // what has not come by now is reduced no more
    return false;
  }
  flushing_.erase(*operation.bucket);
  return true;
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

// A step is what passes between two calls of the same bucket, less the wait at its end; a stall is longer, and counts like three
// steps at most.
void Engine::pace(BucketId bucket, Instant now) {
  const auto [last, first] = lastOfBucket_.try_emplace(bucket, now);
  if (first) {
    return;
  }
  const Duration took = now - std::exchange(last->second, now);
  const Duration own = std::max(took - lastWait_, took / 16);
  step_ = step_ == Duration{} ? own : (7 * step_ + std::min(own, 3 * step_)) / 8;
  grace_.stepTakes(step_);
  paces_.push_back(took);
  if (paces_.size() > kPaces) {
    paces_.pop_front();
  }
}

Duration Engine::longStep(Instant now) const {
  const auto longest = std::max_element(paces_.begin(), paces_.end());
  const Duration past = longest == paces_.end() ? Duration{} : *longest;
  const Duration stall = lastArrival_ ? now - *lastArrival_ : Duration{};
  return std::max(past, kStallGrows * stall);
}

// ---- Proxy ----

void Engine::receive(const ControlMessage& message) {
  std::visit(
      [this](const auto& received) {
        if constexpr (requires { heard(received); }) {
          heard(received);
        }
      },
      message);
}

void Engine::heard(const JoinRequest& request) {
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
  if (options_.script) {
    return nextForced(now);
  }
  if (reserved_) {
    return go_ ? std::optional(fill(*reserved_, reservedOperation_)) : std::nullopt;
  }
  const auto next = requests_.find(filled_);
  if (next == requests_.end() || !mayFill(next->second, now)) {
    return std::nullopt;
  }
  const SlotOperation operation = next->second;
  requests_.erase(next);
  const Slot slot = filled_;
  give(slot, operation, now);
  if (operation.bucket && options_.mode == MitigationMode::kDrop) {
    reserve(slot, operation);
    return std::nullopt;
  }
  return fill(slot, operation);
}

// The same slot when the main thread is as far as it was.
std::optional<Engine::Fill> Engine::nextForced(Instant now) {
  if (script_.empty() || script_.front().slot != filled_ || script_.front().reached != main_) {
    return std::nullopt;
  }
  const Participation next = script_.front();
  script_.pop_front();
  if (!(next.operation.bucket ? contributed_.contains(*next.operation.bucket) : seen_.contains(next.operation))) {
    script_.push_front(next);  // what is not known cannot be filled: the main thread fails when it comes to it
    return std::nullopt;
  }
  give(next.slot, next.operation, now);
  Fill order = fill(next.slot, next.operation);
  const auto participants = options_.script->participants.find(next.slot);
  if (options_.mode == MitigationMode::kDrop && participants != options_.script->participants.end()) {
    order.participants = participants->second;
  }
  return order;
}

void Engine::give(Slot slot, const SlotOperation& operation, Instant now) {
  if (!isBehind()) {
    filledSince_ = now;
  }
  ++filled_;
  ++filledByProxy_;
  log_.push_back({slot, operation});
  remember(slot, operation);
  participations_.push_back({slot, main_, operation});
  if (operation.bucket) {
    ++unreadOf_[*operation.bucket];
    unreadBytes_ += operation.bytes;
  }
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
    // One that is repeated may come when its slot was asked for already.
    while (participants_.size() >= kHistory) {
      participants_.erase(participants_.begin());
    }
    participants_[announcement.slot] = announcement.participants;
    acknowledgements_.push_back({options_.rank, announcement.slot});
  }
}

std::uint32_t Engine::participantsOf(Slot slot) {
  if (options_.script) {
    const auto part = options_.script->participants.find(slot);
    return part == options_.script->participants.end() ? 0 : part->second;
  }
  const auto known = participants_.find(slot);
  const std::uint32_t participants = known == participants_.end() ? 0 : known->second;
  participants_.erase(slot);
  return participants;
}

bool Engine::mayFill(const SlotOperation& operation, Instant now) const {
  if (!isArmed() || !leftAlone().empty() || !operation.canBeJoinedBy(options_.rank)) {
    return false;
  }
  if (!operation.bucket) {
    return seen_.contains(operation) && log_.size() < kMaxRequested;
  }
  return contributed_.contains(*operation.bucket) && !isAtBound(*operation.bucket, operation.bytes, now);
}

bool Engine::isAtBound(BucketId bucket, std::uint64_t bytes, Instant now) const {
  const auto unread = unreadOf_.find(bucket);
  const std::uint64_t steps = unread == unreadOf_.end() ? 0 : unread->second;
  return steps >= options_.staleness || unreadBytes_ + bytes > options_.maxBytes ||
         static_cast<std::int64_t>(steps + 1) * longStep(now) > options_.maxBacklog;
}

std::string Engine::leftAlone() const {
  if (steps_.isPersistent()) {
    return "it is slow in every step, not late now and then: it has to do them all, so nobody would end sooner";
  }
  const auto rooted = steps_.rootedInEveryStep();
  return rooted ? "it is the root of " + *rooted + " in every step, in which the others wait for it" : "";
}

// ---- Waiting ----

// A wait that was cut short, since another rank's slot was filled, counts once it is known how long it would have been.
void Engine::completed(Slot slot, Instant now) {
  const auto longest = grace();
  for (; !waiting_.empty() && waiting_.front().slot <= slot; waiting_.pop_front()) {
    const Duration wait = now - waiting_.front().since;
    lastWait_ = wait;
    waitedFor_ += longest && wait > *longest && !waiting_.front().told ? 1 : 0;
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
  if (toldRefusal_ == leftAlone().empty()) {
    toldRefusal_ = !toldRefusal_;
    result.refusal = Refusal{options_.rank, toldRefusal_};
  }
  result.reservations = std::exchange(answers_, {});
  result.acknowledgements = std::exchange(acknowledgements_, {});
  result.pending = report(now);
  return result;
}

// Of the oldest that waits alone: those behind it cannot be complete before it is. What was begun is gone on with: an
// agreement whose messages were lost must not stop half-way.
std::optional<PendingReport> Engine::report(Instant now) {
  const std::optional<Duration> longest = grace();
  if (waiting_.empty() || !longest || options_.script) {
    return std::nullopt;
  }
  Waiting& oldest = waiting_.front();
  const bool beyondGrace = now - oldest.since >= *longest;
  if (!oldest.told) {
    if (!isArmed() || oldest.flushes || steps_.exactInEveryStep() || !(beyondGrace || othersBehind_)) {
      return std::nullopt;
    }
  } else if (beyondGrace && *oldest.told - oldest.since < *longest) {
    // It was told before the grace was over, since a rank is behind.
  } else if (now - *oldest.told < oldest.repeat) {
    return std::nullopt;
  } else {
    // An agreement needs its messages.
    oldest.repeat = options_.mode == MitigationMode::kDrop ? kRepeat : std::min(2 * oldest.repeat, kRepeatAtMost);
  }
  oldest.told = now;
  return PendingReport{options_.rank, beyondGrace, described(oldest.slot)};
}

Duration Engine::lookAgainIn(Instant now) const {
  const std::optional<Duration> longest = grace();
  if (!longest) {
    return kLookLatest;
  }
  // What begins to wait after this look is found within the grace.
  const Instant next = waiting_.empty()        ? now + *longest
                       : waiting_.front().told ? *waiting_.front().told + waiting_.front().repeat
                                               : waiting_.front().since + *longest;
  return std::clamp<Duration>(next - now, kLookSoonest,
                              std::min<Duration>(kLookLatest, std::max(kLookSoonest, *longest)));
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
