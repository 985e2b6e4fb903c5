// Participation: which slots were filled for a rank, and when; and a run that is made to repeat it.
//
// What a rank contributes to a slot that is filled for it depends on how far its main thread has come by then: that much of
// what it owes goes with it. So a fill is (slot, how far), and a run that repeats all fills of all ranks gives the same
// results from the same gradients, bit for bit, however late its ranks are.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "backend/mitigate/slot.h"

namespace straggler {

struct Participation {
  Slot slot = 0;
  Slot reached = 0;  // the slot that the main thread was yet to arrive in
  SlotOperation operation;

  bool operator==(const Participation&) const = default;
};

// A recorded run, of all ranks.
struct ParticipationScript {
  std::deque<Participation> fills;             // of this rank, by slot
  std::map<Slot, std::uint32_t> participants;  // of slots of buckets that were filled for some rank
};

}  // namespace straggler
