// The operations that tests of the engine are made of.
#pragma once

#include "backend/mitigate/slot.h"

namespace straggler {

inline SlotOperation bucketOf(BucketId id, std::uint64_t elements = 64) {
  return {SlotOperation::Kind::kAllReduce, id, 0, 0, 6, elements, 4 * elements};
}
// An all_reduce that is not of gradients: a loss, a metric, a norm.
inline SlotOperation exactOf(std::uint64_t elements = 1) {
  return {SlotOperation::Kind::kAllReduce, std::nullopt, 0, 0, 6, elements, 4 * elements};
}
inline SlotOperation broadcastFrom(int root) {
  return {SlotOperation::Kind::kBroadcast, std::nullopt, root, 0, 6, 32, 128};
}
inline SlotOperation barrierOf() { return {}; }

}  // namespace straggler
