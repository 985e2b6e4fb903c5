#include "backend/exchange/codec.h"

#include <string>
#include <utility>

#include "backend/base/bytes.h"

namespace straggler {
namespace {

// Beside the kind of a sample: its completion follows; its size class is not that of the sample before, and follows; its
// arrival was seen by polling.
constexpr std::uint8_t kCompletedBit = 0x80;
constexpr std::uint8_t kSizeBit = 0x40;
constexpr std::uint8_t kPolledBit = 0x20;
static_assert(kOpKinds <= kPolledBit);
constexpr std::uint8_t kMaxSizeClass = 64;

// Before the evidence of a window: which of it follows.
constexpr std::uint8_t kInputBit = 1;
constexpr std::uint8_t kCpuBit = 2;
constexpr std::uint8_t kRunDelayBit = 4;
constexpr std::uint8_t kCountersBit = 8;

std::uint64_t bitOf(OsCounter counter) { return std::uint64_t{1} << static_cast<unsigned>(counter); }

// ---- Writing: one function a message ----

void write(ByteWriter& out, const RankHello& hello) {
  out.text(hello.host, kMaxStringBytes);
  out.signedVarint(hello.processId);
  out.text(hello.clockDomain, kMaxStringBytes);
}

void write(ByteWriter& out, const GroupInfo& group) {
  out.text(group.name, kMaxStringBytes);
  out.text(group.description, kMaxStringBytes);
  out.text(group.backend, kMaxStringBytes);
  out.varint(group.ranks.size());
  for (const int rank : group.ranks) {
    out.signedVarint(rank);
  }
}

// Which of them follow, a bit each; then those.
void write(ByteWriter& out, const OsCounters& counters) {
  std::uint64_t present = 0;
  for (const OsCounter counter : allOsCounters()) {
    present |= counters[counter] ? bitOf(counter) : 0;
  }
  out.varint(present);
  for (const OsCounter counter : allOsCounters()) {
    if (const auto& value = counters[counter]) {
      out.varint(*value);
    }
  }
}

void writeEvidence(ByteWriter& out, const StepWindow& window) {
  out.byte(static_cast<std::uint8_t>((window.inputUs ? kInputBit : 0) | (window.cpuUs ? kCpuBit : 0) |
                                     (window.runDelayUs ? kRunDelayBit : 0) |
                                     (window.os == OsCounters{} ? 0 : kCountersBit)));
  for (const auto& value : {window.inputUs, window.cpuUs, window.runDelayUs}) {
    if (value) {
      out.varint(*value);
    }
  }
  if (window.os != OsCounters{}) {
    write(out, window.os);
  }
}

void write(ByteWriter& out, const StepWindow& window) {
  out.signedVarint(window.firstStep);
  out.varint(window.stride);
  out.byte(static_cast<std::uint8_t>(window.foundBy));
  out.varint(window.durationUs);
  out.varint(window.selfUs.size());
  for (const std::uint32_t self : window.selfUs) {
    out.varint(self);
  }
  writeEvidence(out, window);
}

// What is read from a record may be any time: a difference beyond the range wraps, and is refused when it is decoded.
std::int64_t difference(std::int64_t time, std::int64_t base) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(base));
}

void write(ByteWriter& out, const ArrivalSamples& samples) {
  out.varint(samples.sampling);
  out.varint(samples.operations.size());
  OpKey previous;
  std::int64_t reached = 0;
  std::uint8_t sizeClass = 0;
  for (const auto& operation : samples.operations) {
    out.varint(operation.key.group ^ previous.group);
    out.signedVarint(static_cast<std::int64_t>(operation.key.sequence - previous.sequence));
    out.byte(static_cast<std::uint8_t>(
        static_cast<unsigned>(operation.key.kind) | (operation.completed ? kCompletedBit : 0U) |
        (operation.sizeClass != sizeClass ? kSizeBit : 0U) | (operation.polled ? kPolledBit : 0U)));
    out.signedVarint(difference(toNanoseconds(operation.arrival), reached));
    reached = toNanoseconds(operation.arrival);
    if (operation.completed) {
      out.signedVarint(difference(toNanoseconds(*operation.completed), reached));
    }
    if (operation.sizeClass != sizeClass) {
      out.byte(operation.sizeClass);
    }
    sizeClass = operation.sizeClass;
    previous = operation.key;
  }
}

void write(ByteWriter& out, const RankCounters& counters) {
  out.varint(counters.collectives);
  out.varint(counters.recordsDropped);
  out.varint(counters.messagesLost);
  out.varint(counters.captured);
  out.byte(counters.final ? 1 : 0);
}

void write(ByteWriter& out, const MitigationSummary& summary) {
  out.byte(summary.armed ? 1 : 0);
  out.text(summary.mode, kMaxModeBytes);
  out.text(summary.text, kMaxClauseBytes);
  out.varint(summary.filledByProxy);
  out.varint(summary.late);
  out.varint(summary.applied);
  out.varint(summary.dropped);
  out.varint(summary.pending);
  out.varint(summary.stalenessSum);
  out.varint(summary.stalenessMax);
  out.varint(summary.savedUs);
}

void write(ByteWriter& out, const RankProgram& program) {
  out.varint(program.uses.size());
  for (const auto& use : program.uses) {
    out.varint(use.group);
    out.byte(static_cast<std::uint8_t>(use.kind));
  }
}

void write(ByteWriter& out, const ClockReading& reading) {
  for (const Instant time : {reading.rootBefore, reading.rootAfter, reading.before, reading.after}) {
    out.signedVarint(toNanoseconds(time));
  }
}

// ---- Reading: the same, checked ----

RankHello readHello(ByteReader& in) {
  RankHello hello;
  hello.host = in.text(kMaxStringBytes);
  hello.processId = in.signedVarint();
  hello.clockDomain = in.text(kMaxStringBytes);
  return hello;
}

GroupInfo readGroup(ByteReader& in) {
  GroupInfo group;
  group.name = in.text(kMaxStringBytes);
  group.description = in.text(kMaxStringBytes);
  group.backend = in.text(kMaxStringBytes);
  for (std::size_t left = in.count(kMaxGroupRanks); left > 0 && !in.failed(); --left) {
    const std::int64_t rank = in.signedVarint();
    if (rank < 0 || std::cmp_greater(rank, INT32_MAX)) {
      in.fail();
      break;
    }
    group.ranks.push_back(static_cast<int>(rank));
  }
  return group;
}

constexpr std::int64_t kMaxStep = std::int64_t{1} << 48;

OsCounters readOsCounters(ByteReader& in) {
  OsCounters counters;
  const std::uint64_t present = in.varint();
  if (present >> kOsCounters != 0) {
    in.fail();
  }
  for (const OsCounter counter : allOsCounters()) {
    if ((present & bitOf(counter)) != 0) {
      counters[counter] = in.varint();
    }
  }
  return counters;
}

void readEvidence(ByteReader& in, StepWindow& window) {
  const std::uint8_t present = in.byte();
  if (present > (kInputBit | kCpuBit | kRunDelayBit | kCountersBit)) {
    in.fail();
  }
  const auto value = [&in, present](std::uint8_t bit) {
    return (present & bit) != 0 ? std::optional(in.varint()) : std::nullopt;
  };
  window.inputUs = value(kInputBit);
  window.cpuUs = value(kCpuBit);
  window.runDelayUs = value(kRunDelayBit);
  if ((present & kCountersBit) != 0) {
    window.os = readOsCounters(in);
  }
}

StepWindow readWindow(ByteReader& in) {
  StepWindow window;
  window.firstStep = in.signedVarint();
  window.stride = in.atMost32(UINT32_MAX);
  const std::uint8_t foundBy = in.byte();
  if (foundBy > static_cast<std::uint8_t>(StepsFoundBy::kTime) || window.stride == 0 || window.firstStep < 0 ||
      window.firstStep > kMaxStep) {
    in.fail();
  }
  window.foundBy = static_cast<StepsFoundBy>(foundBy);
  window.durationUs = in.varint();
  for (std::size_t left = in.count(kMaxWindowSteps); left > 0 && !in.failed(); --left) {
    window.selfUs.push_back(in.atMost32(UINT32_MAX));
  }
  readEvidence(in, window);
  return window;
}

std::int64_t readTime(ByteReader& in, std::int64_t base) {
  const std::int64_t difference = in.signedVarint();
  if (difference < -kMaxTime || difference > kMaxTime || base + difference < -kMaxTime ||
      base + difference > kMaxTime) {
    in.fail();
    return 0;
  }
  return base + difference;
}

ArrivalSamples readSamples(ByteReader& in) {
  ArrivalSamples samples;
  samples.sampling = in.atMost32(UINT32_MAX);
  OpKey key;
  std::int64_t reached = 0;
  std::uint8_t sizeClass = 0;
  for (std::size_t left = in.count(kMaxSamples); left > 0 && !in.failed(); --left) {
    key.group ^= in.atMost32(UINT32_MAX);
    key.sequence += static_cast<std::uint64_t>(in.signedVarint());
    const std::uint8_t first = in.byte();
    const std::uint8_t kind = first & static_cast<std::uint8_t>(~(kCompletedBit | kSizeBit | kPolledBit));
    if (kind >= kOpKinds) {
      in.fail();
      break;
    }
    key.kind = static_cast<OpKind>(kind);
    reached = readTime(in, reached);
    ArrivalSample sample{key, fromNanoseconds(reached), std::nullopt, (first & kPolledBit) != 0};
    if ((first & kCompletedBit) != 0) {
      sample.completed = fromNanoseconds(readTime(in, reached));
    }
    sizeClass = (first & kSizeBit) != 0 ? in.byte() : sizeClass;
    if (sizeClass > kMaxSizeClass) {
      in.fail();
    }
    sample.sizeClass = sizeClass;
    samples.operations.push_back(sample);
  }
  return samples;
}

RankCounters readCounters(ByteReader& in) {
  RankCounters counters;
  counters.collectives = in.varint();
  counters.recordsDropped = in.varint();
  counters.messagesLost = in.varint();
  counters.captured = in.varint();
  counters.final = in.byte() != 0;
  return counters;
}

MitigationSummary readMitigation(ByteReader& in) {
  MitigationSummary summary;
  summary.armed = in.byte() != 0;
  summary.mode = in.text(kMaxModeBytes);
  summary.text = in.text(kMaxClauseBytes);
  summary.filledByProxy = in.varint();
  summary.late = in.varint();
  summary.applied = in.varint();
  summary.dropped = in.varint();
  summary.pending = in.varint();
  summary.stalenessSum = in.varint();
  summary.stalenessMax = in.varint();
  summary.savedUs = in.varint();
  return summary;
}

RankProgram readProgram(ByteReader& in) {
  RankProgram program;
  for (std::size_t left = in.count(kMaxUses); left > 0 && !in.failed(); --left) {
    const std::uint32_t group = in.atMost32(UINT32_MAX);
    const std::uint8_t kind = in.byte();
    if (kind >= kOpKinds) {
      in.fail();
      break;
    }
    program.uses.push_back({group, static_cast<OpKind>(kind)});
  }
  return program;
}

ClockReading readClock(ByteReader& in) {
  const auto time = [&in] { return fromNanoseconds(readTime(in, 0)); };
  return {time(), time(), time(), time()};
}

// A message's type is its place in the variant.
std::optional<Message> readMessage(ByteReader& in) {
  switch (in.byte()) {
    case 0:
      return readHello(in);
    case 1:
      return readGroup(in);
    case 2:
      return readWindow(in);
    case 3:
      return readSamples(in);
    case 4:
      return readCounters(in);
    case 5:
      return readMitigation(in);
    case 6:
      return readProgram(in);
    case 7:
      return readClock(in);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<std::uint8_t> encode(const Frame& frame) {
  ByteWriter out;
  out.byte(kCodecVersion);
  out.varint(static_cast<std::uint64_t>(frame.rank));
  out.varint(frame.messages.size());
  for (const auto& message : frame.messages) {
    out.byte(static_cast<std::uint8_t>(message.index()));
    std::visit([&out](const auto& m) { write(out, m); }, message);
  }
  return out.take();
}

std::optional<Frame> decode(std::span<const std::uint8_t> bytes) {
  ByteReader in(bytes);
  if (bytes.size() > kMaxFrameBytes || in.byte() != kCodecVersion) {
    return std::nullopt;
  }
  Frame frame;
  frame.rank = static_cast<int>(in.atMost32(INT32_MAX));
  for (std::size_t left = in.count(kMaxMessages); left > 0 && !in.failed(); --left) {
    auto message = readMessage(in);
    if (!message) {
      return std::nullopt;
    }
    frame.messages.push_back(std::move(*message));
  }
  return in.failed() || !in.atEnd() ? std::nullopt : std::optional(std::move(frame));
}

}  // namespace straggler
