// What ranks of a group tell each other so that a slot can be filled for one that is late. Any of these may be lost,
// late, repeated or out of order: none is needed for a right result, only for a soon one.
#pragma once

#include <variant>
#include <vector>

#include "backend/mitigate/slot.h"

namespace straggler {

// Slots last - n + 1 to last, oldest first. Never empty.
struct SlotRange {
  Slot last = 0;
  std::vector<SlotOperation> operations;

  Slot first() const { return last + 1 - operations.size(); }
  bool operator==(const SlotRange&) const = default;
};

// To the coordinator: this rank's main thread waits in the last of these slots. Those before it, complete here, are told
// because a late rank may have to fill them first.
struct PendingReport {
  int rank = 0;             // group rank
  bool beyondGrace = true;  // false: sent at once, since another rank is known to be behind
  SlotRange slots;

  bool operator==(const PendingReport&) const = default;
};

// To the coordinator: this rank has read all that was filled for it, up to `next`, which its main thread will fill.
struct CaughtUp {
  int rank = 0;
  Slot next = 0;
  std::uint64_t overrunUs = 0;  // how long after the first of these slots was filled its main thread arrived in it

  bool operator==(const CaughtUp&) const = default;
};

// To the coordinator: this rank has nothing filled for it any more, or has again. While it is late everybody waits for it,
// so nobody else need be asked either.
struct Refusal {
  int rank = 0;
  bool refuses = true;

  bool operator==(const Refusal&) const = default;
};

// From the coordinator to a rank that has not arrived: fill these for your main thread.
struct JoinRequest {
  SlotRange slots;

  bool operator==(const JoinRequest&) const = default;
};

// ---- Of drop alone: who took part in a slot is agreed before it can complete ----

// To the coordinator, in answer to a request: whether the rank is absent from the slot. If so it has reserved it: its main
// thread can only take the result now.
struct Reservation {
  int rank = 0;
  Slot slot = 0;
  bool absent = true;

  bool operator==(const Reservation&) const = default;
};

// From the coordinator to the participants: so many they are.
struct Announcement {
  Slot slot = 0;
  std::uint32_t participants = 0;

  bool operator==(const Announcement&) const = default;
};

// To the coordinator: the rank knows how many take part.
struct Acknowledgement {
  int rank = 0;
  Slot slot = 0;

  bool operator==(const Acknowledgement&) const = default;
};

// From the coordinator to the absent: join the slot that you have reserved. All participants know it.
struct Go {
  Slot slot = 0;
  std::uint32_t participants = 0;

  bool operator==(const Go&) const = default;
};

// ---- Of both ----

// From the coordinator: whether a rank is behind. While one is, waiting for the grace again in each slot helps nobody.
struct Behind {
  bool any = false;
  std::uint64_t overrunUs = 0;  // if not: how much longer than they did the others would have waited

  bool operator==(const Behind&) const = default;
};

using ControlMessage =
    std::variant<PendingReport, CaughtUp, Refusal, JoinRequest, Behind, Reservation, Announcement, Acknowledgement, Go>;

}  // namespace straggler
