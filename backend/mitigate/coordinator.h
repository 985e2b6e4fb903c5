// Coordinator: decides which ranks are asked to have a slot filled for them. One a group, on its rank 0; a pure function
// of what it hears and when.
//
// A slot is closed without its late ranks when `quorum` ranks wait in it beyond the grace. Where all who are missing are
// known to be behind already, the grace was waited for once, and a quorum that waits is enough.
//
// Reports are repeated while a rank waits, so a request that was lost is made again, at most every kRetry.
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

namespace straggler {

class Coordinator {
 public:
  static constexpr Duration kRetry = std::chrono::milliseconds(20);
  static constexpr std::size_t kMaxSlots = 1024;  // that are remembered

  struct Order {
    int rank = 0;
    std::variant<JoinRequest, Behind> message;

    bool operator==(const Order&) const = default;
  };

  Coordinator(int ranks, int quorum) : ranks_(ranks), quorum_(quorum) {}

  std::vector<Order> hear(const PendingReport& report, Instant now);
  std::vector<Order> hear(const CaughtUp& caughtUp, Instant now);
  std::vector<Order> hear(const Refusal& refusal, Instant now);

 private:
  struct State {
    std::set<int> waiting;
    std::set<int> beyondGrace;
    std::map<int, Instant> asked;
  };

  bool isClosed(const State& state) const;
  void hasReached(int rank, Slot slot, std::vector<Order>& orders);
  // Sets whether a rank is behind, since it was asked to join a slot; tells everyone when the answer to "is anyone?" changes.
  void setBehind(int rank, std::optional<Slot> asked, std::vector<Order>& orders);

  int ranks_;
  int quorum_;
  std::map<Slot, State> slots_;
  std::set<int> refusing_;
  std::uint64_t overrunUs_ = 0;  // the longest of those that are behind
  std::map<int, Slot> behind_;   // and the last slot that they were asked to join
};

}  // namespace straggler
