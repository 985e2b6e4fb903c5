// The decoder of frames under libFuzzer, which looks for bytes that reach new code. What must hold for any bytes:
//
//   decode() neither crashes nor leaves defined behaviour, as the sanitizers see it; it gives a frame, or refuses
//   a frame that was accepted can be sent on: it encodes to bytes that decode to the same frame, and no more of them
//
// Run by tooling/fuzz.sh, beginning with the frames in corpus/codec, which codec_corpus.cc makes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "backend/exchange/codec.h"

namespace {

// Says so to libFuzzer, which then keeps the bytes. An assertion would be compiled out.
void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  if (const auto frame = straggler::decode(bytes)) {
    const auto again = straggler::encode(*frame);
    require(again.size() <= size);
    require(straggler::decode(again) == frame);
  }
  return 0;
}
