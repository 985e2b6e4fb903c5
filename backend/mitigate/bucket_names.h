// BucketNames: which of a group's operations reduce gradients, and may be filled for a late rank.
//
// A bucket is a tensor storage that stays alive between backwards, and is reduced once in each. What only looks like one (a
// collective of the user's inside a backward, of SyncBatchNorm's, of tensor parallelism) sits on storage that expires. The
// position in a backward says nothing: two equal models and reentrant checkpointing have the same ones.
//
// A bucket's name is its ordinal among those found, so it is the same on every rank, as the order of operations is. A storage
// is named when it comes back in a fourth backward: until then it is exact. Anything in a backward that is no such operation
// (the map of used parameters, a gather of a sharded model) ends all naming for good: fail closed. In one backward before
// anything is named it is forgiven, with all that was seen until then: a static graph begins with one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "backend/mitigate/slot.h"

namespace straggler {

// A storage that is watched without keeping it alive.
class StorageWatch {
 public:
  virtual ~StorageWatch() = default;
  virtual bool isAlive() const noexcept = 0;
};

class BucketNames {
 public:
  static constexpr int kSightings = 4;
  static constexpr std::size_t kMaxStorages = 4096;  // alive at once; a model has hundreds of buckets at most

  using Watch = std::function<std::unique_ptr<StorageWatch>()>;

  // An all_reduce of `elements` of a dense floating point tensor, SUM or AVG, in the backward `graphTask`. `storage` is its
  // address; `watch` is called when it is seen for the first time.
  std::optional<BucketId> see(std::uintptr_t storage, std::uint64_t elements, int graphTask, const Watch& watch);

  // A backward does something else.
  void seeOther(const std::string& reason, int graphTask);
  // Ends naming, for the reason that is given first. What has a name keeps it: it may still owe something.
  void refuse(std::string reason);
  // Why nothing is named any more; empty: things are.
  const std::string& refusal() const { return refusal_; }

  // Of the buckets that are alive.
  struct Named {
    std::size_t buckets = 0;
    std::uint64_t elements = 0;

    bool operator==(const Named&) const = default;
  };
  Named named() const;

 private:
  struct Storage {
    std::unique_ptr<StorageWatch> watch;
    std::uint64_t elements = 0;
    int sightings = 0;
    int lastGraphTask = -1;
    std::optional<BucketId> name;
  };

  void forgetTheDead();

  std::map<std::uintptr_t, Storage> storages_;
  BucketId next_ = 0;
  std::optional<int> otherIn_;  // the backward that did something else
  std::string refusal_;
};

}  // namespace straggler
