#include "backend/exchange/beat.h"

#include "backend/base/bytes.h"

namespace straggler {

std::vector<std::uint8_t> encodeBeat(const Beat& beat) {
  ByteWriter out;
  out.varint(beat.number);
  out.signedVarint(toNanoseconds(beat.before));
  out.signedVarint(toNanoseconds(beat.lastShown));
  out.varint(beat.asked.size());
  for (const int rank : beat.asked) {
    out.varint(static_cast<std::uint64_t>(rank));
  }
  return out.take();
}

std::optional<Beat> decodeBeat(std::span<const std::uint8_t> bytes) {
  ByteReader in(bytes);
  Beat beat;
  beat.number = in.varint();
  beat.before = fromNanoseconds(in.signedVarint());
  beat.lastShown = fromNanoseconds(in.signedVarint());
  for (std::size_t left = in.count(kMaxAsked); left > 0 && !in.failed(); --left) {
    beat.asked.push_back(static_cast<int>(in.atMost32(INT32_MAX)));
  }
  return in.failed() || !in.atEnd() ? std::nullopt : std::optional(std::move(beat));
}

}  // namespace straggler
