// Coordinator: decides which ranks are asked to have a slot filled for them. One a group, on its rank 0; a pure function
// of what it hears and when.
//
// A slot is closed without its late ranks when `quorum` ranks wait in it beyond the grace. Where all who are missing are
// known to be behind already, the grace was waited for once, and a quorum that waits is enough.
//
// Reports are repeated while a rank waits, so a request that was lost is made again, at most every kRetry.
//
// In drop mode, who takes part in a slot is agreed before it can complete: those asked answer whether they are absent, the
// participants are told how many they are and say that they know, and only then do the absent join. Whatever of this is
// lost is said again at the next report.
//
// Example, four ranks, quorum 2: ranks 0 and 2 report slot 9. Ranks 1 and 3 are asked to join it, and are behind from now
// on; everyone is told so. Rank 3 was only a little late: its next report is of slot 10, so it is not behind. In slot 10
// ranks 0 and 2 report at once, rank 1 alone is missing and known to be behind: it is asked at once.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "backend/base/clock.h"
#include "backend/mitigate/messages.h"
#include "backend/mitigate/mode.h"

namespace straggler {

class Coordinator {
 public:
  static constexpr Duration kRetry = std::chrono::milliseconds(20);
  static constexpr std::size_t kMaxSlots = 1024;  // that are remembered

  struct Order {
    int rank = 0;
    std::variant<JoinRequest, Behind, Announcement, Go> message;

    bool operator==(const Order&) const = default;
  };

  Coordinator(int ranks, int quorum, MitigationMode mode = MitigationMode::kCarry)
      : ranks_(ranks), quorum_(quorum), mode_(mode) {}

  // Whatever came in; one that is meant for a rank is nothing.
  std::vector<Order> receive(const ControlMessage& message, Instant now);
  std::vector<Order> hear(const PendingReport& report, Instant now);
  std::vector<Order> hear(const CaughtUp& caughtUp, Instant now);
  std::vector<Order> hear(const Refusal& refusal, Instant now);
  std::vector<Order> hear(const Reservation& reservation, Instant now);
  std::vector<Order> hear(const Acknowledgement& acknowledgement, Instant now);

 private:
  struct State {
    std::set<int> waiting;
    std::set<int> beyondGrace;
    std::map<int, Instant> asked;
    // Of drop.
    std::map<int, bool> absent;  // as those asked have answered
    std::set<int> acknowledged;
    std::optional<Instant> said;  // the announcement, or the go
  };

  bool isClosed(const State& state) const;
  void ask(Slot slot, State& state, const PendingReport& report, Instant now, std::vector<Order>& orders);
  // Goes on with the agreement on who is absent from a slot; `again`: what was said may have been lost.
  void agree(Slot slot, State& state, bool again, Instant now, std::vector<Order>& orders);
  void hasReached(int rank, Slot slot, std::vector<Order>& orders);
  // Sets whether a rank is behind, since it was asked to join a slot; tells everyone when the answer to "is anyone?" changes.
  void setBehind(int rank, std::optional<Slot> asked, std::vector<Order>& orders);

  int ranks_;
  int quorum_;
  MitigationMode mode_;
  std::map<Slot, State> slots_;
  std::set<int> refusing_;
  std::uint64_t overrunUs_ = 0;  // the longest of those that are behind
  std::map<int, Slot> behind_;   // and the last slot that they were asked to join
};

}  // namespace straggler
