#include "backend/mitigate/coordinator.h"

#include <algorithm>

namespace straggler {

std::vector<Coordinator::Order> Coordinator::receive(const ControlMessage& message, Instant now) {
  return std::visit(
      [this, now](const auto& received) -> std::vector<Order> {
        if constexpr (requires { hear(received, now); }) {
          return hear(received, now);
        }
        return {};
      },
      message);
}

std::vector<Coordinator::Order> Coordinator::hear(const PendingReport& report, Instant now) {
  std::vector<Order> orders;
  const Slot slot = report.slots.last;
  if (report.rank < 0 || report.rank >= ranks_) {
    return orders;
  }
  if (slots_.size() >= kMaxSlots && !slots_.contains(slot)) {
    slots_.erase(slots_.begin());  // the oldest: it is complete, or its ranks will report it again
  }
  State& state = slots_[slot];
  state.waiting.insert(report.rank);
  if (report.beyondGrace) {
    state.beyondGrace.insert(report.rank);
  }
  hasReached(report.rank, slot, orders);
  if (!report.beyondGrace && behind_.empty()) {
    orders.push_back({report.rank, Behind{false, 0}});  // it has not heard
  }
  const auto asked = state.absent.find(report.rank);
  if (state.asked.contains(report.rank) && asked == state.absent.end()) {
    state.absent[report.rank] = false;
  }
  ask(slot, state, report, now, orders);
  agree(slot, state, true, now, orders);
  return orders;
}

// Who was asked is asked again, whatever has changed since: its answer may be lost, and it may have reserved the slot.
void Coordinator::ask(Slot slot, State& state, const PendingReport& report, Instant now, std::vector<Order>& orders) {
  const bool closed = isClosed(state);
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto asked = state.asked.find(rank);
    if (!closed && asked == state.asked.end()) {
      continue;
    }
    if (state.waiting.contains(rank) || state.absent.contains(rank) ||
        (asked != state.asked.end() && now - asked->second < kRetry)) {
      continue;
    }
    state.asked[rank] = now;
    orders.push_back({rank, JoinRequest{report.slots}});
    setBehind(rank, slot, orders);
  }
}

// ---- Drop ----

std::vector<Coordinator::Order> Coordinator::hear(const Reservation& reservation, Instant now) {
  std::vector<Order> orders;
  const auto state = slots_.find(reservation.slot);
  if (state != slots_.end() && state->second.asked.contains(reservation.rank)) {
    state->second.absent.try_emplace(reservation.rank, reservation.absent);
    agree(reservation.slot, state->second, false, now, orders);
  }
  return orders;
}

std::vector<Coordinator::Order> Coordinator::hear(const Acknowledgement& acknowledgement, Instant now) {
  std::vector<Order> orders;
  const auto state = slots_.find(acknowledgement.slot);
  if (state != slots_.end() && state->second.said && state->second.acknowledged.insert(acknowledgement.rank).second) {
    agree(acknowledgement.slot, state->second, false, now, orders);
  }
  return orders;
}

void Coordinator::agree(Slot slot, State& state, bool again, Instant now, std::vector<Order>& orders) {
  if (mode_ != MitigationMode::kDrop || state.asked.empty() || state.absent.size() < state.asked.size()) {
    return;  // not all have answered
  }
  const auto isAbsent = [&state](int rank) {
    const auto answer = state.absent.find(rank);
    return answer != state.absent.end() && answer->second;
  };
  std::vector<int> unaware;
  std::uint32_t participants = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!isAbsent(rank)) {
      ++participants;
      if (!state.acknowledged.contains(rank)) {
        unaware.push_back(rank);
      }
    }
  }
  const bool news = unaware.empty() || !state.said;
  if (participants == static_cast<std::uint32_t>(ranks_) || (!news && (!again || now - *state.said < kRetry))) {
    return;
  }
  state.said = now;
  for (const int rank : unaware) {
    orders.push_back({rank, Announcement{slot, participants}});
  }
  for (int rank = 0; unaware.empty() && rank < ranks_; ++rank) {
    if (isAbsent(rank)) {
      orders.push_back({rank, Go{slot, participants}});
    }
  }
}

// ---- Who is behind ----

std::vector<Coordinator::Order> Coordinator::hear(const CaughtUp& caughtUp, Instant /*now*/) {
  std::vector<Order> orders;
  if (caughtUp.next > 0) {
    overrunUs_ = std::max(overrunUs_, caughtUp.overrunUs);
    hasReached(caughtUp.rank, caughtUp.next - 1, orders);
  }
  return orders;
}

std::vector<Coordinator::Order> Coordinator::hear(const Refusal& refusal, Instant /*now*/) {
  if (refusal.refuses) {
    refusing_.insert(refusal.rank);
  } else {
    refusing_.erase(refusal.rank);
  }
  return {};
}

// What it tells may be older than the last request to it, which then is still on its way.
void Coordinator::hasReached(int rank, Slot slot, std::vector<Order>& orders) {
  const auto behind = behind_.find(rank);
  if (behind != behind_.end() && slot >= behind->second) {
    setBehind(rank, std::nullopt, orders);
  }
}

bool Coordinator::isClosed(const State& state) const {
  if (std::any_of(refusing_.begin(), refusing_.end(), [&state](int rank) { return !state.waiting.contains(rank); })) {
    return false;
  }
  const auto quorum = static_cast<std::size_t>(quorum_);
  if (state.beyondGrace.size() >= quorum) {
    return true;
  }
  const auto known = static_cast<std::size_t>(std::count_if(
      behind_.begin(), behind_.end(), [&state](const auto& behind) { return !state.waiting.contains(behind.first); }));
  return state.waiting.size() >= quorum && state.waiting.size() + known == static_cast<std::size_t>(ranks_);
}

void Coordinator::setBehind(int rank, std::optional<Slot> asked, std::vector<Order>& orders) {
  const bool any = !behind_.empty();
  if (asked) {
    behind_[rank] = *asked;
  } else {
    behind_.erase(rank);
  }
  if (any != !behind_.empty()) {
    for (int each = 0; each < ranks_; ++each) {
      orders.push_back({each, Behind{!any, overrunUs_}});
    }
    overrunUs_ = 0;
  }
}

}  // namespace straggler
