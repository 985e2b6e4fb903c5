#include "backend/mitigate/control_codec.h"

#include <cmath>
#include <utility>

#include "backend/base/bytes.h"

namespace straggler {
namespace {

constexpr std::uint8_t kBucketBit = 0x80;  // beside the kind of an operation: its bucket follows

// ---- Writing ----

void write(ByteWriter& out, const SlotRange& range) {
  out.varint(range.last);
  out.varint(range.operations.size());
  for (const SlotOperation& operation : range.operations) {
    const auto kind = static_cast<std::uint8_t>(operation.kind);
    out.byte(operation.bucket ? kind | kBucketBit : kind);
    if (operation.bucket) {
      out.varint(*operation.bucket);
      out.number(operation.scale);
    }
    out.signedVarint(operation.root);
    out.byte(operation.reduction);
    out.signedVarint(operation.dtype);
    out.varint(operation.elements);
    out.varint(operation.bytes);
  }
}

void write(ByteWriter& out, const PendingReport& report) {
  out.signedVarint(report.rank);
  out.byte(report.beyondGrace ? 1 : 0);
  write(out, report.slots);
}

void write(ByteWriter& out, const CaughtUp& caughtUp) {
  out.signedVarint(caughtUp.rank);
  out.varint(caughtUp.next);
  out.varint(caughtUp.overrunUs);
}

void write(ByteWriter& out, const Refusal& refusal) {
  out.signedVarint(refusal.rank);
  out.byte(refusal.refuses ? 1 : 0);
}

void write(ByteWriter& out, const JoinRequest& request) { write(out, request.slots); }

void write(ByteWriter& out, const Behind& behind) {
  out.byte(behind.any ? 1 : 0);
  out.varint(behind.overrunUs);
}

void write(ByteWriter& out, const Reservation& reservation) {
  out.signedVarint(reservation.rank);
  out.varint(reservation.slot);
  out.byte(reservation.absent ? 1 : 0);
}

void write(ByteWriter& out, const Acknowledgement& acknowledgement) {
  out.signedVarint(acknowledgement.rank);
  out.varint(acknowledgement.slot);
}

template <class Participation>  // an Announcement, or a Go
void write(ByteWriter& out, const Participation& participation) {
  out.varint(participation.slot);
  out.varint(participation.participants);
}

// ---- Reading: the same, checked ----

template <class Integer>
Integer readWithin(ByteReader& in, std::int64_t lowest, std::int64_t highest) {
  const std::int64_t value = in.signedVarint();
  if (value < lowest || value > highest) {
    in.fail();
    return 0;
  }
  return static_cast<Integer>(value);
}

bool readFlag(ByteReader& in) {
  const std::uint8_t value = in.byte();
  if (value > 1) {
    in.fail();
  }
  return value == 1;
}

SlotOperation readOperation(ByteReader& in) {
  SlotOperation operation;
  const std::uint8_t kind = in.byte();
  if ((kind & ~kBucketBit) > static_cast<std::uint8_t>(SlotOperation::Kind::kOther)) {
    in.fail();
    return operation;
  }
  operation.kind = static_cast<SlotOperation::Kind>(kind & ~kBucketBit);
  if ((kind & kBucketBit) != 0) {
    operation.bucket = in.atMost32(UINT32_MAX);
    operation.scale = in.number();
  }
  if (!std::isfinite(operation.scale) || operation.scale <= 0) {
    in.fail();
  }
  if (operation.bucket && operation.kind != SlotOperation::Kind::kAllReduce) {
    in.fail();
  }
  operation.root = readWithin<std::int32_t>(in, 0, INT32_MAX);
  operation.reduction = in.byte();
  operation.dtype = readWithin<std::int8_t>(in, INT8_MIN, INT8_MAX);
  operation.elements = in.varint();
  operation.bytes = in.varint();
  return operation;
}

SlotRange readRange(ByteReader& in) {
  SlotRange range;
  range.last = in.varint();
  const std::size_t count = in.count(kMaxRange);
  if (count == 0 || count - 1 > range.last) {
    in.fail();
  }
  for (std::size_t left = count; left > 0 && !in.failed(); --left) {
    range.operations.push_back(readOperation(in));
  }
  return range;
}

template <class Participation>
Participation readParticipation(ByteReader& in) {
  Participation participation;
  participation.slot = in.varint();
  participation.participants = in.atMost32(INT32_MAX);
  return participation;
}

// In the order of ControlMessage's alternatives.
std::optional<ControlMessage> readMessage(ByteReader& in) {
  switch (in.byte()) {
    case 0: {
      PendingReport report;
      report.rank = readWithin<int>(in, 0, INT32_MAX);
      report.beyondGrace = readFlag(in);
      report.slots = readRange(in);
      return report;
    }
    case 1: {
      CaughtUp caughtUp;
      caughtUp.rank = readWithin<int>(in, 0, INT32_MAX);
      caughtUp.next = in.varint();
      caughtUp.overrunUs = in.varint();
      return caughtUp;
    }
    case 2: {
      Refusal refusal;
      refusal.rank = readWithin<int>(in, 0, INT32_MAX);
      refusal.refuses = readFlag(in);
      return refusal;
    }
    case 3:
      return JoinRequest{readRange(in)};
    case 4: {
      Behind behind;
      behind.any = readFlag(in);
      behind.overrunUs = in.varint();
      return behind;
    }
    case 5: {
      Reservation reservation;
      reservation.rank = readWithin<int>(in, 0, INT32_MAX);
      reservation.slot = in.varint();
      reservation.absent = readFlag(in);
      return reservation;
    }
    case 6:
      return readParticipation<Announcement>(in);
    case 7: {
      Acknowledgement acknowledgement;
      acknowledgement.rank = readWithin<int>(in, 0, INT32_MAX);
      acknowledgement.slot = in.varint();
      return acknowledgement;
    }
    case 8:
      return readParticipation<Go>(in);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<std::uint8_t> encodeControl(const ControlMessage& message) {
  ByteWriter out;
  out.byte(kControlVersion);
  out.byte(static_cast<std::uint8_t>(message.index()));
  std::visit([&out](const auto& fields) { write(out, fields); }, message);
  return out.take();
}

std::optional<ControlMessage> decodeControl(std::span<const std::uint8_t> bytes) {
  ByteReader in(bytes);
  if (bytes.size() > kMaxControlBytes || in.byte() != kControlVersion) {
    return std::nullopt;
  }
  auto message = readMessage(in);
  return in.failed() || !in.atEnd() ? std::nullopt : std::move(message);
}

}  // namespace straggler
