// The decoder of frames, on any bytes:
//
//   decode() neither crashes nor leaves defined behaviour, as the sanitizers see it; it gives a frame, or refuses
//   a frame that was accepted can be sent on: it encodes to bytes that decode to the same frame, and no more of them
#include "backend/exchange/codec.h"
#include "tests/fuzz/fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using straggler::require;
  const std::span<const std::uint8_t> bytes(data, size);
  if (const auto frame = straggler::decode(bytes)) {
    const auto again = straggler::encode(*frame);
    require(again.size() <= size);
    require(straggler::decode(again) == frame);
  }
  return 0;
}
