// Ledger: what became of every gradient of one rank. Produced = on time + late + dropped + pending, exactly, of each bucket.
//
// A gradient is produced when the main thread arrives with it. It is on time if the rank's own call contributes it, late if
// a later contribution of the rank carries it, dropped if it never will be, and pending until then.
//
// Staleness is counted in contributions of the bucket: 1 is the one right after the slot that the gradient was made for.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "backend/mitigate/slot.h"

namespace straggler {

struct BucketLedger {
  std::uint64_t produced = 0;
  std::uint64_t onTime = 0;
  std::uint64_t late = 0;
  std::uint64_t dropped = 0;
  std::uint64_t pending = 0;
  std::uint64_t staleness = 0;  // sum over those that were late
  std::uint64_t maxStaleness = 0;

  bool operator==(const BucketLedger&) const = default;
};

class Ledger {
 public:
  // The main thread's own contribution; `number` counts the slots of this bucket.
  void onTime(BucketId bucket);
  // The main thread's gradient of a slot that was filled for it.
  void owed(BucketId bucket, std::uint64_t number);
  void dropped(BucketId bucket);
  // The last that was owed is none after all: it cannot be carried.
  void discardLast(BucketId bucket);
  // A contribution takes all that the bucket owes with it. Says whether that is anything.
  bool carried(BucketId bucket, std::uint64_t number);
  bool owes(BucketId bucket) const;

  // What is pending will not be applied any more.
  void giveUpPending();

  const std::map<BucketId, BucketLedger>& buckets() const { return buckets_; }
  BucketLedger total() const;

 private:
  std::map<BucketId, BucketLedger> buckets_;
  std::map<BucketId, std::vector<std::uint64_t>> owed_;  // numbers of the slots they were made for
};

}  // namespace straggler
