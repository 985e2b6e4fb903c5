#include "backend/exchange/beat.h"

#include "backend/base/bytes.h"
#include "backend/exchange/messages.h"

namespace straggler {

namespace {

// A reading made of it would cost the frame that it travels in.
bool isRefused(Instant time) { return toNanoseconds(time) < -kMaxTime || toNanoseconds(time) > kMaxTime; }

}  // namespace

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
  const bool refused = isRefused(beat.before) || isRefused(beat.lastShown);
  return in.failed() || !in.atEnd() || refused ? std::nullopt : std::optional(std::move(beat));
}

}  // namespace straggler
