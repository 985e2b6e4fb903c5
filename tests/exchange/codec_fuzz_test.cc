// Damaged frames never crash decode(). Seeded, so a failure repeats. What the job's model does with those that decode()
// accepts is in tests/detect/job_model_damage_test.cc.
#include <random>

#include <gtest/gtest.h>

#include "backend/exchange/codec.h"
#include "tests/fakes/damage.h"
#include "tests/fakes/operations.h"

namespace straggler {
namespace {

constexpr int kIterations = 100'000;

Frame everyMessage() {
  ArrivalSamples samples{2, {{{1, 20, OpKind::kAllReduce}, at(7), at(8)}, {{9, 3, OpKind::kBroadcast}, at(9), {}}}};
  StepWindow window{20, 1, StepsFoundBy::kGraphTask, {25'000, 25'100, 24'900}, 78'000, 2'000, 70'000, 500};
  window.os[OsCounter::kBlockIo] = 10'000;
  window.os[OsCounter::kReadBytes] = 2'000'000;
  return {
      1,
      {RankHello{"host-a", 12345, "clock"}, GroupInfo{"0", "default_pg", "gloo", {0, 1, 2}}, window, samples,
       RankCounters{900, 1, 2, 3, true}, MitigationSummary{true, "carry", "group 0", 41, 40, 37, 1, 2, 74, 5, 325},
       RankProgram{{{1, OpKind::kAllReduce}, {9, OpKind::kSend}}}, ClockReading{at(10'001), at(10'002), at(1), at(2)}}};
}

TEST(CodecFuzz, damagedFramesNeverCrash) {
  const auto whole = encode(everyMessage());
  std::mt19937 random(20261130);
  int accepted = 0;
  for (int i = 0; i < kIterations; ++i) {
    if (const auto frame = decode(damaged(whole, random))) {
      ++accepted;
      ASSERT_TRUE(decode(encode(*frame))) << "what was accepted can be sent on";
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kIterations);
}

TEST(CodecFuzz, randomBytesNeverCrash) {
  std::mt19937 random(4711);
  for (std::size_t i = 0; i < kIterations; ++i) {
    std::vector<std::uint8_t> bytes(1 + i % 64);
    for (auto& byte : bytes) {
      byte = static_cast<std::uint8_t>(random());
    }
    bytes.front() = kCodecVersion;
    (void)decode(bytes);
  }
}

}  // namespace
}  // namespace straggler
