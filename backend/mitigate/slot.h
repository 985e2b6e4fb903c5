// Slot: the place of one collective in a group's ordered log, and what must be known of the collective to take part in it
// without its caller.
//
// A group's collectives are numbered in program order, so a slot is the same operation on every rank. On each rank each
// slot is filled exactly once: by the main thread when it arrives in time, else by the proxy.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace straggler {

using Slot = std::uint64_t;

// A tensor storage that gradients are reduced in, step after step: its ordinal among a group's, equal on every rank.
using BucketId = std::uint32_t;

struct SlotOperation {
  enum class Kind : std::uint8_t { kAllReduce, kBroadcast, kOther };

  Kind kind = Kind::kOther;
  std::optional<BucketId> bucket{};  // of an all_reduce of gradients
  std::int32_t root = 0;             // of a broadcast: group rank
  std::uint8_t reduction = 0;        // torch's number
  std::int8_t dtype = 0;             // torch's number
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  // Of a bucket: by how much the gradients in it are scaled up (GradScaler's scale). The same on all ranks in one slot; a
  // rank that is late learns it from those that wait.
  double scale = 1;

  // Whether `rank` can take part without its caller, and nobody gets another result than one that is only late.
  bool canBeJoinedBy(int rank) const { return bucket.has_value() || (kind == Kind::kBroadcast && root != rank); }

  // Whether both are the same call. A bucket's name and its scale do not count: a rank that is late learns them later.
  bool isCallOf(const SlotOperation& other) const {
    return kind == other.kind && root == other.root && reduction == other.reduction && dtype == other.dtype &&
           elements == other.elements;
  }

  auto operator<=>(const SlotOperation&) const = default;
};

}  // namespace straggler
