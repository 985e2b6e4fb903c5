#include "backend/mitigate/control_codec.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "tests/fakes/slot_operations.h"

namespace straggler {
namespace {

const SlotRange kRange{70, {broadcastFrom(3), bucketOf(2, 1U << 30), exactOf(), barrierOf()}};

std::vector<ControlMessage> messages() {
  return {PendingReport{8191, false, kRange},
          PendingReport{0, true, {0, {barrierOf()}}},
          CaughtUp{7, 1ULL << 60, 600'000},
          Refusal{3, true},
          JoinRequest{kRange},
          Behind{true, 0},
          Behind{false, 5000},
          Reservation{3, 9, true},
          Announcement{9, 6},
          Acknowledgement{0, 9},
          Go{9, 6}};
}

TEST(ControlCodec, everyMessageIsReadAsItWasWritten) {
  for (const ControlMessage& message : messages()) {
    EXPECT_EQ(decodeControl(encodeControl(message)), message);
  }
}

TEST(ControlCodec, theScaleOfABucketIsRead) {
  SlotOperation scaled = bucketOf(2);
  scaled.scale = 65536;
  EXPECT_EQ(decodeControl(encodeControl(JoinRequest{{7, {scaled}}})), ControlMessage(JoinRequest{{7, {scaled}}}));
}

TEST(ControlCodec, aScaleThatNobodyCanUseIsRefused) {
  for (const double scale : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    SlotOperation scaled = bucketOf(2);
    scaled.scale = scale;
    EXPECT_EQ(decodeControl(encodeControl(JoinRequest{{7, {scaled}}})), std::nullopt) << scale;
  }
}

TEST(ControlCodec, whatIsCutOrHasMoreIsNothing) {
  for (const ControlMessage& message : messages()) {
    auto bytes = encodeControl(message);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_EQ(decodeControl(std::span(bytes).first(length)), std::nullopt) << length;
    }
    bytes.push_back(0);
    EXPECT_EQ(decodeControl(bytes), std::nullopt);
  }
}

TEST(ControlCodec, anotherVersionIsRefused) {
  auto bytes = encodeControl(Behind{true, 0});
  ++bytes[0];
  EXPECT_EQ(decodeControl(bytes), std::nullopt);
}

TEST(ControlCodec, rangeThatIsEmptyOrBeginsBeforeTheFirstSlotIsRefused) {
  EXPECT_EQ(decodeControl(encodeControl(JoinRequest{{5, {}}})), std::nullopt);
  EXPECT_EQ(decodeControl(encodeControl(JoinRequest{{0, {barrierOf(), barrierOf()}}})), std::nullopt);
}

TEST(ControlCodec, longestRangeIsWithinTheBound) {
  const SlotOperation largest{
      SlotOperation::Kind::kAllReduce, UINT32_MAX, INT32_MAX, 255, -128, UINT64_MAX, UINT64_MAX};
  const JoinRequest request{{UINT64_MAX, std::vector<SlotOperation>(kMaxRange, largest)}};
  EXPECT_EQ(decodeControl(encodeControl(request)), ControlMessage(request));
  const JoinRequest longer{{UINT64_MAX, std::vector<SlotOperation>(kMaxRange + 1, largest)}};
  EXPECT_EQ(decodeControl(encodeControl(longer)), std::nullopt);
}

TEST(ControlCodec, bytesThatAreDamagedAreAMessageOrNothing) {
  std::mt19937 random(1);
  std::size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto bytes = encodeControl(messages()[static_cast<std::size_t>(round) % messages().size()]);
    bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1U << (random() % 8));
    const auto message = decodeControl(bytes);
    refused += !message ? 1 : 0;
    if (message) {
      EXPECT_EQ(decodeControl(encodeControl(*message)), message);
    }
  }
  EXPECT_GT(refused, 1000U);
}

}  // namespace
}  // namespace straggler
