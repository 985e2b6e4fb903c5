#include "backend/mitigate/ledger.h"

#include <algorithm>

namespace straggler {

void Ledger::onTime(BucketId bucket) {
  BucketLedger& ledger = buckets_[bucket];
  ++ledger.produced;
  ++ledger.onTime;
}

void Ledger::owed(BucketId bucket, std::uint64_t number) {
  BucketLedger& ledger = buckets_[bucket];
  ++ledger.produced;
  ++ledger.pending;
  owed_[bucket].push_back(number);
}

void Ledger::dropped(BucketId bucket) {
  BucketLedger& ledger = buckets_[bucket];
  ++ledger.produced;
  ++ledger.dropped;
}

void Ledger::discardLast(BucketId bucket) {
  const auto owed = owed_.find(bucket);
  if (owed == owed_.end()) {
    return;
  }
  owed->second.pop_back();
  if (owed->second.empty()) {
    owed_.erase(owed);
  }
  BucketLedger& ledger = buckets_[bucket];
  --ledger.pending;
  ++ledger.dropped;
}

bool Ledger::carried(BucketId bucket, std::uint64_t number) {
  const auto owed = owed_.find(bucket);
  if (owed == owed_.end()) {
    return false;
  }
  BucketLedger& ledger = buckets_[bucket];
  for (const std::uint64_t madeFor : owed->second) {
    const std::uint64_t staleness = number - madeFor;
    ledger.staleness += staleness;
    ledger.maxStaleness = std::max(ledger.maxStaleness, staleness);
  }
  ledger.late += owed->second.size();
  ledger.pending -= owed->second.size();
  owed_.erase(owed);
  return true;
}

bool Ledger::owes(BucketId bucket) const { return owed_.contains(bucket); }

void Ledger::giveUpPending() {
  for (auto& [bucket, ledger] : buckets_) {
    ledger.dropped += ledger.pending;
    ledger.pending = 0;
  }
  owed_.clear();
}

BucketLedger Ledger::total() const {
  BucketLedger total;
  for (const auto& [bucket, ledger] : buckets_) {
    total.produced += ledger.produced;
    total.onTime += ledger.onTime;
    total.late += ledger.late;
    total.dropped += ledger.dropped;
    total.pending += ledger.pending;
    total.staleness += ledger.staleness;
    total.maxStaleness = std::max(total.maxStaleness, ledger.maxStaleness);
  }
  return total;
}

}  // namespace straggler
