// What a line of a record file may say: as `straggler report` reads it, every number can be any of its type. It is bounded
// by the way through the codec.
//
//   neither encode() of any values nor decode() of what it gives crashes or leaves defined behaviour
//   what comes out is what went in, or it is refused
//
// An input: a frame after two bytes of its length; then numbers of eight bytes, which change those of the frame's messages.
#include <concepts>
#include <optional>
#include <vector>

#include "backend/exchange/codec.h"
#include "tests/fuzz/fuzzing.h"

namespace straggler {
namespace {

void change(Input& by, ArrivalSample& sample);
void change(Input& by, OperationUse& use);
void change(Input& by, Instant& time) {
  const auto number = static_cast<std::uint64_t>(toNanoseconds(time)) ^ by.number(8);
  time = fromNanoseconds(static_cast<std::int64_t>(number));
}
template <std::integral T>
void change(Input& by, T& number) {
  number = static_cast<T>(static_cast<std::uint64_t>(number) ^ by.number(8));
}
template <class T>
void change(Input& by, std::optional<T>& value) {
  if (value) {
    change(by, *value);
  }
}
template <class T>
void change(Input& by, std::vector<T>& values) {
  for (auto& value : values) {
    change(by, value);
  }
}

void change(Input& by, RankHello& hello) { change(by, hello.processId); }
void change(Input& by, GroupInfo& group) { change(by, group.ranks); }
void change(Input& by, StepWindow& window) {
  change(by, window.firstStep);
  change(by, window.stride);
  change(by, window.selfUs);
  change(by, window.durationUs);
  change(by, window.inputUs);
  change(by, window.cpuUs);
  change(by, window.runDelayUs);
  for (const OsCounter counter : allOsCounters()) {
    change(by, window.os[counter]);
  }
}
void change(Input& by, ArrivalSample& sample) {
  change(by, sample.key.group);
  change(by, sample.key.sequence);
  change(by, sample.arrival);
  change(by, sample.completed);
  change(by, sample.sizeClass);
}
void change(Input& by, ArrivalSamples& samples) {
  change(by, samples.sampling);
  change(by, samples.operations);
}
void change(Input& by, RankCounters& counters) {
  change(by, counters.collectives);
  change(by, counters.recordsDropped);
  change(by, counters.messagesLost);
  change(by, counters.captured);
}
void change(Input& by, ClockReading& reading) {
  change(by, reading.rootBefore);
  change(by, reading.rootAfter);
  change(by, reading.before);
  change(by, reading.after);
}
void change(Input& by, MitigationSummary& summary) {
  change(by, summary.filledByProxy);
  change(by, summary.late);
  change(by, summary.applied);
  change(by, summary.dropped);
  change(by, summary.pending);
  change(by, summary.stalenessSum);
  change(by, summary.stalenessMax);
  change(by, summary.savedUs);
}

void change(Input& by, OperationUse& use) { change(by, use.group); }
void change(Input& by, RankProgram& program) { change(by, program.uses); }

}  // namespace
}  // namespace straggler

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace straggler;
  Input input(data, size);
  auto frame = decode(input.block());
  if (!frame) {
    return 0;
  }
  change(input, frame->rank);
  for (auto& message : frame->messages) {
    std::visit([&input](auto& m) { change(input, m); }, message);
  }
  const auto read = decode(encode(*frame));
  require(!read || *read == *frame);
  return 0;
}
