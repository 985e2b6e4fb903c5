// What ranks tell the root of their session: summaries of steps and a sample of arrivals, never every operation.
//
// Every message can be written as bytes (codec.h) for the store and as a JSON line (report/json_records.h) for the
// records; feeding either again gives the same report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/base/clock.h"
#include "backend/observe/operation.h"
#include "backend/observe/os_counters.h"
#include "backend/observe/step_finder.h"

namespace straggler {

// A time more than 36 years from the clock's zero is refused, in ns: then neither the differences of what is accepted nor
// the clock offsets found from them, nor arrivals moved by such an offset, can overflow.
inline constexpr std::int64_t kMaxTime = std::int64_t{1} << 60;

// Who a rank is. Sent first, and again when the root asks for it by starting anew.
struct RankHello {
  std::string host;
  std::int64_t processId = 0;
  std::string clockDomain;  // ranks with the same, non-empty domain share their clock

  bool operator==(const RankHello&) const = default;
};

// A group, told by the first of its ranks.
struct GroupInfo {
  std::string name;  // torch's; its hash is the GroupId
  std::string description;
  std::string backend;
  std::vector<int> ranks;  // global

  GroupId id() const { return groupId(name); }
  bool operator==(const GroupInfo&) const = default;
};

// A window of consecutive steps. Windows are aligned: `firstStep` is a multiple of the window's length on every rank.
struct StepWindow {
  std::int64_t firstStep = 0;
  // Of the windows that the rank closes it sends one in `stride`, those with index divisible by it; a power of two.
  std::uint32_t stride = 1;
  StepsFoundBy foundBy = StepsFoundBy::kNone;
  std::vector<std::uint32_t> selfUs;  // self time of each step, in microseconds
  std::uint64_t durationUs = 0;       // length of all of them
  // Evidence, in all of them together. Absent: not measured.
  std::optional<std::uint64_t> inputUs{};     // self time inside a DataLoader's fetch
  std::optional<std::uint64_t> cpuUs{};       // the training thread ran on a processor
  std::optional<std::uint64_t> runDelayUs{};  // the training thread was ready to run and waited for a processor
  OsCounters os{};                            // what else the operating system counted

  bool operator==(const StepWindow&) const = default;
};

// The bits that a size in bytes takes: sizes of one class differ by less than a factor of two.
std::uint8_t sizeClassOf(std::uint64_t bytes);

struct ArrivalSample {
  OpKey key;
  Instant arrival{};
  std::optional<Instant> completed;
  // The arrival was seen by polling a device, and may be late by the period: no bound of another clock follows from it.
  bool polled = false;
  std::uint8_t sizeClass = 0;  // of the rank's input; 0: it has none, or it was not told

  bool operator==(const ArrivalSample&) const = default;
};

// Arrivals of some collectives. Which, is decided by a hash of the op key, so that ranks that can afford different rates
// still choose the same operations: a rank with `sampling` s sends those whose hash is divisible by s.
struct ArrivalSamples {
  std::uint32_t sampling = 1;  // one in so many; a power of two
  std::vector<ArrivalSample> operations;

  bool operator==(const ArrivalSamples&) const = default;
};

// Totals since the rank's session began.
struct RankCounters {
  std::uint64_t collectives = 0;
  std::uint64_t recordsDropped = 0;  // operations that found the ring full, or could not be written to the records
  std::uint64_t messagesLost = 0;    // messages that could not be sent
  std::uint64_t captured = 0;        // operations captured into a device graph, whose replays are not seen
  bool final = false;                // the rank's last message

  bool operator==(const RankCounters&) const = default;
};

// What mitigation did on a rank so far. Totals; sent when something of it changed, and at the end.
struct MitigationSummary {
  bool armed = false;
  std::string mode;                 // carry, drop
  std::string text;                 // when armed: for what; else why not. One clause, no full stop. At most 200 bytes
  std::uint64_t filledByProxy = 0;  // slots of any kind
  std::uint64_t late = 0;           // slots of buckets that were filled before the rank arrived in them
  std::uint64_t applied = 0;        // late gradients that went with a later contribution
  std::uint64_t dropped = 0;        // discarded for good
  std::uint64_t pending = 0;        // still owed
  std::uint64_t stalenessSum = 0;   // steps, over those applied
  std::uint64_t stalenessMax = 0;
  std::uint64_t savedUs = 0;  // the others would have waited so long for this rank, and did not

  bool operator==(const MitigationSummary&) const = default;
};

// What a rank saw of the root's clock over the store (session/clock_beat.h): the root showed a beat between `rootBefore` and
// `rootAfter`, on its clock; the rank looked at `before` and did not see it yet, and had seen it at `after`, on its own.
struct ClockReading {
  Instant rootBefore{};
  Instant rootAfter{};
  Instant before{};
  Instant after{};

  bool operator==(const ClockReading&) const = default;
};

struct OperationUse {
  GroupId group = 0;
  OpKind kind = OpKind::kAllReduce;

  auto operator<=>(const OperationUse&) const = default;
};

// What a rank does again and again: which kinds of operations, in which groups, its training thread called in each of its
// last windows. Told before the first window, and when it changes. Ranks that do the same can be compared.
struct RankProgram {
  static constexpr std::size_t kWindows = 3;  // of those, or of as many as there are

  std::vector<OperationUse> uses;  // ascending

  bool operator==(const RankProgram&) const = default;
};

using Message = std::variant<RankHello, GroupInfo, StepWindow, ArrivalSamples, RankCounters, MitigationSummary,
                             RankProgram, ClockReading>;

// One transmission of one rank.
struct Frame {
  int rank = 0;  // global
  std::vector<Message> messages;

  bool operator==(const Frame&) const = default;
};

}  // namespace straggler
