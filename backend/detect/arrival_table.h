// ArrivalTable: brings the ranks' samples of one operation together, by op key. An operation is compared only once every
// rank of its group has told its arrival: a missing rank is missing, never early or late.
//
// A rank that tells twice counts once, with its first word. That is looked at when there are as many samples as ranks, once
// for all of them: with thousands of ranks, looking for each sample among those before it is what would take the time.
//
// Bounded: when too many operations wait for a rank, the oldest is given up and counted.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "backend/detect/clocks.h"
#include "backend/exchange/messages.h"

namespace straggler {

class ArrivalTable {
 public:
  static constexpr std::size_t kMaxSamples = std::size_t{1} << 18;  // of operations that wait

  void setGroupSize(GroupId group, std::size_t ranks) { groupSizes_[group] = ranks; }

  // Returns the samples of all ranks when this was the last that the operation waited for.
  std::optional<std::vector<RankSample>> add(int rank, const ArrivalSample& sample);

  std::uint64_t givenUp() const { return givenUp_; }
  // Keys that are held, those of complete operations behind one that waits too.
  std::size_t held() const { return order_.size(); }

 private:
  std::map<GroupId, std::size_t> groupSizes_;
  std::map<OpKey, std::vector<RankSample>> waiting_;
  std::deque<OpKey> order_;  // oldest first; may name operations that are complete by now
  std::size_t samples_ = 0;
  std::uint64_t givenUp_ = 0;
};

}  // namespace straggler
