#include "backend/observe/operation.h"

#include <array>

namespace straggler {
namespace {

constexpr std::array<std::string_view, kOpKinds> kKindNames = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "broadcast",   "reduce",
    "gather",     "scatter",    "coalesced",      "send",       "recv",    "batched_p2p",
};

constexpr std::array<std::string_view, 9> kSourceNames = {
    "pending", "unknown", "host", "future", "poll", "device_event", "completion", "wait", "graph_task",
};

}  // namespace

std::string_view toString(OpKind kind) { return kKindNames.at(static_cast<std::size_t>(kind)); }

std::optional<OpKind> opKindFromString(std::string_view text) {
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames.at(i) == text) {
      return static_cast<OpKind>(i);
    }
  }
  return std::nullopt;
}

bool completesTogether(OpKind kind) {
  switch (kind) {
    case OpKind::kAllReduce:
    case OpKind::kAllGather:
    case OpKind::kReduceScatter:
    case OpKind::kAllToAll:
    case OpKind::kBarrier:
      return true;
    default:
      return false;
  }
}

// FNV-1a, 32 bits.
GroupId groupId(std::string_view name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return hash;
}

std::string_view toString(StampSource source) { return kSourceNames.at(static_cast<std::size_t>(source)); }

}  // namespace straggler
