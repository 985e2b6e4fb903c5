// Operation: the record of one call of a rank's backend, complete when constructed, and the op key that names it.
//
// Collectives of a group are numbered in program order, so (group, sequence, kind) is the same on every rank. Point to
// point calls are recorded but not numbered: which of them a rank makes differs by rank.
//
// Times are on the rank's own monotonic clock. Each says where it came from; one that is not known stays unknown and is
// never replaced by another:
//
//   arrival    the rank entered the call; on a device, its stream got there, so that the inputs were ready
//   issued     the call returned a Work (or nothing)
//   completed  the Work was done
//   waited     the rank began to wait for the Work
//   released   the rank could go on: see StampSource for how that is seen, by kind of call
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backend/base/clock.h"

namespace straggler {

enum class OpKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBarrier,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kCoalesced,
  kSend,
  kRecv,
  kBatchedP2P,  // several sends and receives at once
};
inline constexpr int kOpKinds = static_cast<int>(OpKind::kBatchedP2P) + 1;

std::string_view toString(OpKind kind);
std::optional<OpKind> opKindFromString(std::string_view text);

// Whether no rank can complete before the last has arrived. Only such operations bound one clock by another.
bool completesTogether(OpKind kind);

// Whether ranks number it alike.
inline bool isNumbered(OpKind kind) { return kind < OpKind::kSend; }

// A group is known to other ranks by the hash of its name, which torch makes equal on all its members.
using GroupId = std::uint32_t;
GroupId groupId(std::string_view name);

struct OpKey {
  GroupId group = 0;
  std::uint64_t sequence = 0;
  OpKind kind = OpKind::kAllReduce;

  auto operator<=>(const OpKey&) const = default;
};

enum class StampSource : std::uint8_t {
  kPending,      // may still come
  kUnknown,      // will never be known
  kHost,         // read from the clock at that moment
  kFuture,       // a callback of the Work's Future
  kPoll,         // seen by polling the Work; late by up to the poll's period
  kDeviceEvent,  // an event on the caller's stream, seen by polling it; late by up to the poll's period
  kCompletion,   // a synchronous call: the caller goes on when the operation completes
  kWait,         // the end of the caller's wait()
  kGraphTask,    // inside a backward: the end of the backward, after the reducer's own wait
};
std::string_view toString(StampSource source);

struct Stamp {
  Instant time{};
  StampSource source = StampSource::kPending;

  bool pending() const { return source == StampSource::kPending; }
  bool known() const { return source > StampSource::kUnknown; }
  static Stamp unknown() { return {{}, StampSource::kUnknown}; }
};

inline constexpr int kNoGraphTask = -1;

struct Operation {
  OpKey key;
  const char* method = "";  // torch's name of the method; static storage
  const char* dtype = "";   // static storage; empty: no tensor
  std::uint64_t bytes = 0;  // of this rank's input
  Stamp arrival;
  Stamp issued;
  Stamp completed;
  Stamp waited;
  Stamp released;
  int graphTask = kNoGraphTask;  // autograd's id of the backward it was called in
  bool asynchronous = false;
  bool trainingThread = true;  // false: another thread of the process, such as an asynchronous checkpoint's
  bool failed = false;

  // Nothing more will be learned of it.
  bool settled() const {
    return !arrival.pending() && !issued.pending() && !completed.pending() && !released.pending();
  }
};

}  // namespace straggler
