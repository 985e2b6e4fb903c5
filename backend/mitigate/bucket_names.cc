#include "backend/mitigate/bucket_names.h"

#include <utility>

namespace straggler {

std::optional<BucketId> BucketNames::see(std::uintptr_t storage, std::uint64_t elements, int graphTask,
                                         const Watch& watch) {
  auto found = storages_.find(storage);
  if (found != storages_.end() && !found->second.watch->isAlive()) {
    storages_.erase(found);  // another one at its address
    found = storages_.end();
  }
  if (!refusal_.empty()) {
    return found == storages_.end() ? std::nullopt : found->second.name;
  }
  if (found == storages_.end()) {
    forgetTheDead();
    if (storages_.size() >= kMaxStorages) {
      refuse("more than " + std::to_string(kMaxStorages) + " tensors are reduced in its backwards");
      return std::nullopt;
    }
    found = storages_.emplace(storage, Storage{watch(), elements, 0, -1, std::nullopt}).first;
  }
  Storage& seen = found->second;
  if (seen.lastGraphTask == graphTask) {
    refuse("a backward reduces one tensor twice");
    return std::nullopt;
  }
  if (seen.elements != elements) {
    refuse("a backward reduces other parts of a tensor than the one before");
    return std::nullopt;
  }
  seen.lastGraphTask = graphTask;
  if (!seen.name && ++seen.sightings == kSightings) {
    seen.name = next_++;
  }
  return seen.name;
}

BucketNames::Named BucketNames::named() const {
  Named result;
  for (const auto& [address, storage] : storages_) {
    if (storage.name && storage.watch->isAlive()) {
      ++result.buckets;
      result.elements += storage.elements;
    }
  }
  return result;
}

void BucketNames::forgetTheDead() {
  std::erase_if(storages_, [](const auto& entry) { return !entry.second.watch->isAlive(); });
}

void BucketNames::seeOther(const std::string& reason, int graphTask) {
  const bool forgiven = next_ == 0 && otherIn_.value_or(graphTask) == graphTask;
  otherIn_ = graphTask;
  if (forgiven) {
    storages_.clear();
  } else {
    refuse(reason);
  }
}

void BucketNames::refuse(std::string reason) {
  if (refusal_.empty()) {
    refusal_ = std::move(reason);
    std::erase_if(storages_, [](const auto& entry) { return !entry.second.name; });
  }
}

}  // namespace straggler
