// The decoder of control messages, on any bytes:
//
//   decodeControl() neither crashes nor leaves defined behaviour; it gives a message, or refuses
//   a message that was accepted can be sent on, and neither an engine nor a coordinator that hears it leaves defined behaviour
#include "backend/mitigate/control_codec.h"
#include "backend/mitigate/coordinator.h"
#include "backend/mitigate/engine.h"
#include "tests/fakes/slot_operations.h"
#include "tests/fuzz/fuzzing.h"

namespace straggler {
namespace {

constexpr Instant kNow = Instant(std::chrono::seconds(1));

void hear(Engine& engine, const ControlMessage& message) {
  engine.receive(message);
  for (int fills = 0; engine.nextFill(kNow); ++fills) {
    require(fills < 100);
  }
  engine.tell(kNow + std::chrono::seconds(1));
}

void hear(Coordinator& coordinator, const ControlMessage& message) {
  for (const auto& order : coordinator.receive(message, kNow)) {
    require(order.rank >= 0 && order.rank < 4);
  }
}

}  // namespace
}  // namespace straggler

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace straggler;
  const auto message = decodeControl(std::span<const std::uint8_t>(data, size));
  if (!message) {
    return 0;
  }
  require(decodeControl(encodeControl(*message)) == message);
  for (const MitigationMode mode : {MitigationMode::kCarry, MitigationMode::kDrop}) {
    Engine engine({.rank = 1, .mode = mode, .grace = Duration{}});
    engine.arrive(bucketOf(0), kNow);
    engine.arrive(broadcastFrom(0), kNow);
    Coordinator coordinator(4, 2, mode);
    for (int times = 0; times < 2; ++times) {
      hear(engine, *message);
      hear(coordinator, *message);
    }
  }
  return 0;
}
