// Engine: one rank's part of the ordered log of its group. A state machine: it is told what happens and says what to do;
// the carrier moves tensors and messages, and calls it with one lock held, which it keeps while it issues what was ordered.
// So slots are issued to the inner backend in their order, each once.
//
// The main thread is *behind* while slots were filled for it that it has not reached. What it brings to such a slot becomes
// the residual of the bucket, and goes with the rank's next contribution, whoever makes that.
//
// Example, one bucket, gradients g1, g2 ... of this rank, which stalls before slot 2:
//
//   main:  slot 1 with g1 | stalls ................ | takes 2, owes g2 | takes 3, owes g2+g3 | slot 4 with g4+g2+g3
//   proxy:                | fills 2 with 0, 3 with 0 |
//
// Its peers waited for one grace in slot 2 and not at all in slot 3; all ranks apply the same four results.
//
// What it refuses: a call that is not the one that the slot was filled with. Then ranks run different programs, and no
// result of theirs means anything.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backend/base/clock.h"
#include "backend/mitigate/grace.h"
#include "backend/mitigate/ledger.h"
#include "backend/mitigate/messages.h"
#include "backend/mitigate/mode.h"
#include "backend/mitigate/participation.h"
#include "backend/mitigate/slot.h"
#include "backend/mitigate/step_history.h"

namespace straggler {

class Engine {
 public:
  static constexpr std::size_t kHistory = 64;                         // operations that a report can describe
  static constexpr std::size_t kMaxRequested = 4096;                  // slots that are known from requests
  static constexpr Duration kRepeat = std::chrono::milliseconds(20);  // at first; in carry each time twice as long
  static constexpr Duration kRepeatAtMost = std::chrono::milliseconds(640);

  struct Options {
    int rank = 0;  // in the group
    MitigationMode mode = MitigationMode::kCarry;
    std::uint64_t staleness = 8;  // slots of a bucket that may be filled for the main thread in a row
    std::uint64_t maxBytes = std::uint64_t{1} << 30;  // of results that the main thread has not taken
    std::optional<Duration> grace{};                  // nothing: as measured
    // What the main thread may need to catch up: at the next exact operation it is waited for as long.
    Duration maxBacklog = std::chrono::seconds(60);
    // A recorded run to repeat; null: none. Then nothing is told or asked for.
    std::shared_ptr<const ParticipationScript> script{};
  };

  // ---- Main thread ----

  // Issue the inner collective at once; add the residual of the bucket to its tensor before.
  struct Issue {
    Slot slot = 0;
    bool withResidual = false;

    bool operator==(const Issue&) const = default;
  };
  // Give the logged result of the slot. If it owes, the gradient is added to the residual of `bucket`.
  struct Take {
    Slot slot = 0;
    BucketId bucket = 0;
    bool owes = false;

    bool operator==(const Take&) const = default;
  };
  // Raise. Nothing more can be done with the group.
  struct Fail {
    std::string reason;

    bool operator==(const Fail&) const = default;
  };
  // Arrive again once something was filled: the slot before is reserved, and comes first.
  struct Wait {
    bool operator==(const Wait&) const = default;
  };
  using Arrival = std::variant<Issue, Take, Wait, Fail>;

  explicit Engine(Options options);

  // `what`: the operation, for people.
  Arrival arrive(const SlotOperation& operation, Instant now, const std::string& what = "another operation");
  // An operation of another group, in which its ranks wait for each other.
  void exactElsewhere(const std::string& what) { steps_.exact(what); }
  // The slots from now until each bucket was reduced once more are left to their ranks: what these owe goes with their own
  // next contributions. On all ranks at the same place of the program.
  void flush();
  // A gradient of an earlier run that is still owed.
  void restore(BucketId bucket) { ledger_.owed(bucket, brought_[bucket]); }

  // ---- Messages ----

  // Whatever came in; one that is meant for a coordinator is nothing.
  void receive(const ControlMessage& message);
  void heard(const JoinRequest& request);
  void heard(const Behind& behind);
  // Of drop: how many take part in a slot that waits.
  void heard(const Announcement& announcement);
  // Of drop: the slot is reserved, and may be filled now.
  void heard(const Go& go);

  // ---- Proxy ----

  // Issue the inner collective with zeros, or with the residual of the bucket, and log it.
  struct Fill {
    Slot slot = 0;
    SlotOperation operation;
    bool withResidual = false;
    std::uint32_t participants = 0;  // of drop; 0: all

    bool operator==(const Fill&) const = default;
  };
  // The next to be filled now; nothing if there is none, or the main thread is as far behind as it may be. To be called
  // after each arrive() and receive(), until it gives nothing.
  std::optional<Fill> nextFill(Instant now);

  // ---- Waiting, as the monitor of the carrier sees it ----

  // Everything up to and with this slot is complete.
  void completed(Slot slot, Instant now);
  // How many took part in a slot that the main thread issued; 0: all. Once it is complete, and once only; slots may be complete
  // in another order than theirs.
  std::uint32_t participantsOf(Slot slot);
  // What to tell the coordinator now.
  struct Tell {
    std::optional<PendingReport> pending;
    std::optional<CaughtUp> caughtUp;
    std::optional<Refusal> refusal;
    std::vector<Reservation> reservations;
    std::vector<Acknowledgement> acknowledgements;
  };
  Tell tell(Instant now);

  // ---- Whether it is worth it ----

  // See StepHistory. An operation that nobody can be spared in and that comes in every step: then nothing is reported.
  std::optional<std::string> exactInEveryStep() const { return steps_.exactInEveryStep(); }
  // Why nothing is filled for this rank for now; empty: it is.
  std::string leftAlone() const;
  // What the others would have waited for this rank, and did not.
  Duration saved() const { return saved_; }
  // Slots that were waited in for longer than the grace, and left to the ranks that were late.
  std::uint64_t waitedFor() const { return waitedFor_; }
  std::optional<Duration> grace() const { return options_.grace ? options_.grace : grace_.value(); }

  // ---- State ----

  // Whether what may be filled is known for certain. As long as it is not, nothing is told or filled.
  void arm(bool armed) { armed_ = armed; }
  bool isArmed() const { return armed_ && standing_; }
  // No slot is filled any more. What was filled is taken, and what is owed is still carried.
  void standDown() { standing_ = false; }
  bool isStanding() const { return standing_; }
  void setMaxBacklog(Duration backlog) { options_.maxBacklog = backlog; }
  // Whether something is to be told without waiting for the grace.
  bool tellsAtOnce() const { return othersBehind_ || tellCaughtUp_ || !answers_.empty() || !acknowledgements_.empty(); }
  // When time alone may give something to tell.
  Duration lookAgainIn(Instant now) const;
  Slot reached() const { return main_; }
  bool isBehind() const { return main_ < filled_; }
  std::size_t unread() const { return log_.size(); }
  std::uint64_t filledByProxy() const { return filledByProxy_; }
  const Ledger& ledger() const { return ledger_; }
  Ledger& ledger() { return ledger_; }
  // What was filled since the last call.
  std::vector<Participation> takeParticipations() { return std::exchange(participations_, {}); }

 private:
  struct Entry {
    Slot slot = 0;
    SlotOperation operation;
  };
  struct Waiting {
    Slot slot = 0;
    Instant since;
    std::optional<Instant> told;
    bool flushes = false;  // it is left to the ranks that are late
    Duration repeat = kRepeat;
  };

  Fail fail(std::string reason);
  Issue issue(const SlotOperation& operation, Instant now);
  Take take(Instant now);
  bool isFlushing(const SlotOperation& operation);
  std::optional<Fill> nextForced(Instant now);
  // The slot is the rank's no more, but the proxy's.
  void give(Slot slot, const SlotOperation& operation, Instant now);
  void reserve(Slot slot, const SlotOperation& operation);
  Fill fill(Slot slot, const SlotOperation& operation);
  bool mayFill(const SlotOperation& operation, Instant now) const;
  bool isAtBound(BucketId bucket, std::uint64_t bytes, Instant now) const;
  // How long a step of this rank may take: as long as the longest of the last, or as the stall that it is in may yet become.
  Duration longStep(Instant now) const;
  bool contribute(BucketId bucket);
  // The main thread takes a slot: how late it is, and whether it is behind no more.
  void reached(Instant now);
  void learn(const SlotOperation& operation);
  void count(const SlotOperation& operation, Instant now, const std::string& what);
  void remember(Slot slot, const SlotOperation& operation);
  void pace(BucketId bucket, Instant now);
  std::optional<PendingReport> report(Instant now);
  SlotRange described(Slot last) const;

  Options options_;
  bool armed_ = true;
  bool standing_ = true;
  std::string failure_;
  Slot main_ = 0;          // the main thread's next
  Slot filled_ = 0;        // the next to be filled; not before main_
  std::deque<Entry> log_;  // main_ to filled_ - 1
  std::map<BucketId, std::uint64_t> unreadOf_;
  std::uint64_t unreadBytes_ = 0;
  std::uint64_t filledByProxy_ = 0;
  std::map<Slot, SlotOperation> requests_;  // not before filled_
  std::deque<Entry> history_;               // the last that were filled
  std::deque<Waiting> waiting_;             // of the main thread, oldest first
  bool othersBehind_ = false;
  bool tellCaughtUp_ = false;
  std::map<BucketId, std::uint64_t> brought_;      // slots of a bucket that the main thread has reached
  std::map<BucketId, std::uint64_t> contributed_;  // that were filled
  std::set<SlotOperation> seen_;                   // broadcasts that the main thread has made
  std::map<BucketId, Instant> lastOfBucket_;
  Duration step_{};             // of the main thread without its waits, smoothed
  Duration lastWait_{};         // in the last slot that is known to be complete
  std::deque<Duration> paces_;  // the last steps as they were
  std::optional<Instant> lastArrival_;
  StepHistory steps_;
  bool toldRefusal_ = false;
  // Buckets to be reduced once more until the flush is over; that is so too when one comes round for the second time.
  std::set<BucketId> flushing_;
  std::set<BucketId> flushed_;
  std::uint64_t waitedFor_ = 0;
  std::vector<Participation> participations_;
  std::deque<Participation> script_;    // fills to come, of a run that is repeated
  std::optional<Instant> filledSince_;  // the first of the slots that the main thread has not reached
  Duration overrun_{};
  Duration saved_{};
  // Of drop.
  std::optional<Slot> reserved_;  // and not filled; then it is the last before filled_
  SlotOperation reservedOperation_;
  std::optional<Go> go_;         // of it
  std::set<Slot> reservations_;  // all of late
  std::map<Slot, std::uint32_t> participants_;
  std::vector<Reservation> answers_;
  std::vector<Acknowledgement> acknowledgements_;
  std::optional<Duration> cutShort_;  // the wait of the slot that others were asked to fill
  Grace grace_;
  Ledger ledger_;
};

}  // namespace straggler
