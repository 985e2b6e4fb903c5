// The round trip of every message, and what decode() refuses. Random damage: codec_fuzz_test.cc.
#include "backend/exchange/codec.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "backend/base/bytes.h"
#include "tests/fakes/operations.h"

namespace straggler {
namespace {

using Bytes = std::vector<std::uint8_t>;

void expectRoundTrip(const Frame& frame) {
  const auto read = decode(encode(frame));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, frame);
}

// A frame of rank 3 whose one message is written by `write`.
template <class F>
Bytes handWritten(std::uint8_t type, F&& write) {
  ByteWriter out;
  out.byte(kCodecVersion);
  out.varint(3);
  out.varint(1);
  out.byte(type);
  write(out);
  return out.take();
}

TEST(Codec, helloRoundTrip) { expectRoundTrip({3, {RankHello{"host-a", 12345, "boot/time:[4026531834]"}}}); }

TEST(Codec, groupRoundTrip) {
  expectRoundTrip({0, {GroupInfo{"0", "default_pg", "gloo", {0, 1, 2, std::numeric_limits<int>::max()}}}});
}

TEST(Codec, windowRoundTrip) {
  expectRoundTrip({7, {StepWindow{120, 4, StepsFoundBy::kOpPeriod, {0, 25'000, UINT32_MAX}, UINT64_MAX}}});
}

TEST(Codec, evidenceRoundTripInEachCombination) {
  const auto value = [](bool present, std::uint64_t number) { return present ? std::optional(number) : std::nullopt; };
  for (unsigned present = 0; present < 8; ++present) {
    StepWindow window{10, 1, StepsFoundBy::kGraphTask, {1, 2}, 3};
    window.inputUs = value((present & 1U) != 0, 0);
    window.cpuUs = value((present & 2U) != 0, 300'000);
    window.runDelayUs = value((present & 4U) != 0, UINT64_MAX);
    expectRoundTrip({7, {window, RankCounters{}}});
  }
}

TEST(Codec, evidenceOfAnUnknownKindIsRefused) {
  Bytes bytes = encode({7, {StepWindow{10, 1, StepsFoundBy::kGraphTask, {1}, 3}}});
  ASSERT_EQ(bytes.back(), 0) << "no evidence";
  bytes.back() = 16;
  EXPECT_FALSE(decode(bytes));
}

TEST(Codec, countersRoundTripEachAloneAndAllTogether) {
  StepWindow all{10, 1, StepsFoundBy::kGraphTask, {1}, 3};
  for (const OsCounter counter : allOsCounters()) {
    StepWindow window{10, 1, StepsFoundBy::kGraphTask, {1}, 3};
    window.os[counter] = 0;
    expectRoundTrip({7, {window}});
    all.os[counter] = UINT64_MAX - static_cast<std::uint64_t>(counter);
  }
  expectRoundTrip({7, {all, RankCounters{}}});
}

TEST(Codec, counterOfAnUnknownKindIsRefused) {
  const auto window = [](std::uint64_t present) {
    return handWritten(2, [present](ByteWriter& out) {
      out.signedVarint(10);
      out.varint(1);
      out.byte(0);
      out.varint(3);
      out.varint(0);
      out.byte(8);
      out.varint(present);
      out.varint(5);
    });
  };
  EXPECT_TRUE(decode(window(std::uint64_t{1} << (kOsCounters - 1))));
  EXPECT_FALSE(decode(window(std::uint64_t{1} << kOsCounters)));
}

TEST(Codec, samplesRoundTrip) {
  ArrivalSamples samples{8, {}};
  samples.operations.push_back({{0xFFFFFFFFU, 17, OpKind::kBroadcast}, at(1e6), at(1e6 + 0.5)});
  samples.operations.push_back({{1, 16, OpKind::kAllReduce}, at(1e6 - 3), std::nullopt, false, 64});
  samples.operations.push_back({{1, 17, OpKind::kAllReduce}, at(1e6 - 2), std::nullopt, false, 64});
  samples.operations.push_back({{1, UINT64_MAX, OpKind::kBatchedP2P}, fromNanoseconds(0), at(-5)});
  expectRoundTrip({2, {samples}});
}

TEST(Codec, sizeClassIsTheNumberOfBits) {
  EXPECT_EQ(sizeClassOf(0), 0);
  EXPECT_EQ(sizeClassOf(1), 1);
  EXPECT_EQ(sizeClassOf((1 << 21) - 1), 21);
  EXPECT_EQ(sizeClassOf(1 << 20), 21);
  EXPECT_EQ(sizeClassOf(UINT64_MAX), 64);
}

TEST(Codec, sizeClassBeyondTheLargestIsRefused) {
  ArrivalSamples samples{1, {{{1, 16, OpKind::kAllReduce}, at(1), std::nullopt, false, 65}}};
  EXPECT_FALSE(decode(encode({2, {samples}})));
}

TEST(Codec, programRoundTrip) {
  expectRoundTrip({3, {RankProgram{}}});
  expectRoundTrip({3, {RankProgram{{{0, OpKind::kBatchedP2P}, {UINT32_MAX, OpKind::kAllReduce}}}}});
}

TEST(Codec, programWithAnUnknownKindOrTooManyUsesIsRefused) {
  EXPECT_FALSE(decode(handWritten(6, [](ByteWriter& out) { out.varint(1), out.varint(7), out.byte(kOpKinds); })));
  RankProgram program{std::vector<OperationUse>(kMaxUses)};
  EXPECT_TRUE(decode(encode({3, {program}})));
  program.uses.emplace_back();
  EXPECT_FALSE(decode(encode({3, {program}})));
}

TEST(Codec, countersRoundTrip) { expectRoundTrip({1, {RankCounters{UINT64_MAX, 1, 2, 3, true}}}); }

TEST(Codec, mitigationRoundTrip) {
  expectRoundTrip({1, {MitigationSummary{}}});
  expectRoundTrip({1, {MitigationSummary{true, "carry", "gradients of group 0", 1, 2, 3, 4, 5, 6, 7, UINT64_MAX}}});
}

TEST(Codec, mitigationsTextIsCutAndBeyondTheLimitRefused) {
  const std::string text = std::string(kMaxClauseBytes - 1, 'x') + "€";
  const auto frame = decode(encode({0, {MitigationSummary{false, std::string(99, 'm'), text}}}));
  ASSERT_TRUE(frame);
  EXPECT_EQ(std::get<MitigationSummary>(frame->messages.front()).text, std::string(kMaxClauseBytes - 1, 'x'));
  EXPECT_EQ(std::get<MitigationSummary>(frame->messages.front()).mode, std::string(kMaxModeBytes, 'm'));
  const auto written = [](std::size_t mode, std::size_t clause) {
    return handWritten(5, [=](ByteWriter& out) {
      out.byte(1);
      out.text(std::string(mode, 'm'), mode);
      out.text(std::string(clause, 'x'), clause);
      for (int total = 0; total < 8; ++total) {
        out.varint(0);
      }
    });
  };
  EXPECT_TRUE(decode(written(kMaxModeBytes, kMaxClauseBytes)));
  EXPECT_FALSE(decode(written(kMaxModeBytes + 1, kMaxClauseBytes)));
  EXPECT_FALSE(decode(written(kMaxModeBytes, kMaxClauseBytes + 1)));
}

TEST(Codec, severalMessagesKeepTheirOrder) {
  expectRoundTrip({1,
                   {RankCounters{}, RankHello{}, StepWindow{}, ArrivalSamples{}, MitigationSummary{}, GroupInfo{},
                    ClockReading{}, RankCounters{}}});
}

TEST(Codec, frameWithoutMessagesIsAFrame) { expectRoundTrip({0, {}}); }

TEST(Codec, everyTruncationIsRefused) {
  StepWindow window{10, 1, StepsFoundBy::kGraphTask, {1, 2, 300}, 5'000, 700, 4'000, 1};
  window.os[OsCounter::kVoluntarySwitches] = 300;
  window.os[OsCounter::kQuotaThrottled] = 0;
  const Bytes bytes =
      encode({3,
              {RankHello{"host-a", 1, "clock"}, GroupInfo{"0", "d", "gloo", {0, 1}}, window,
               ArrivalSamples{2, {{{1, 5, OpKind::kBarrier}, at(7), at(8)}}}, RankCounters{900, 0, 0, 0, true},
               MitigationSummary{true, "carry", "gradients of group 0", 300, 2, 3, 4, 5, 6, 7, 8}}});
  ASSERT_TRUE(decode(bytes));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode(std::span(bytes).first(length))) << length << " of " << bytes.size() << " bytes";
  }
}

TEST(Codec, bytesLeftOverAreRefused) {
  Bytes bytes = encode({3, {RankCounters{}}});
  bytes.push_back(0);
  EXPECT_FALSE(decode(bytes));
}

TEST(Codec, anotherVersionIsRefused) {
  Bytes bytes = encode({3, {RankCounters{}}});
  bytes.front() = kCodecVersion + 1;
  EXPECT_FALSE(decode(bytes));
}

TEST(Codec, clockReadingRoundTrip) {
  expectRoundTrip({4, {ClockReading{at(1), at(2), at(-1e7), at(1e7)}, RankCounters{}}});
  expectRoundTrip({4, {ClockReading{}}});
}

TEST(Codec, clockReadingsTooFarFromZeroAreRefused) {
  const auto reading = [](std::int64_t ns) { return Frame{1, {ClockReading{{}, {}, {}, fromNanoseconds(ns)}}}; };
  EXPECT_TRUE(decode(encode(reading(std::int64_t{1} << 60U))));
  EXPECT_FALSE(decode(encode(reading((std::int64_t{1} << 60U) + 1))));
  EXPECT_FALSE(decode(encode(reading(INT64_MIN))));
}

TEST(Codec, sampleSaysWhetherItsArrivalWasPolled) {
  for (const bool polled : {false, true}) {
    expectRoundTrip(
        {4, {ArrivalSamples{1, {{{1, 20, OpKind::kBatchedP2P}, at(7), at(8), polled}, {{1, 21}, at(7), {}, polled}}}}});
  }
}

TEST(Codec, unknownMessageTypeIsRefused) {
  EXPECT_FALSE(decode(handWritten(7, [](ByteWriter&) {})));
}

TEST(Codec, frameThatIsTooLargeIsRefused) { EXPECT_FALSE(decode(Bytes(kMaxFrameBytes + 1, kCodecVersion))); }

TEST(Codec, limitsAreWhatTheySay) {
  const auto windowOf = [](std::size_t steps) {
    return Frame{0, {StepWindow{0, 1, StepsFoundBy::kTime, std::vector<std::uint32_t>(steps, 1), 1}}};
  };
  EXPECT_TRUE(decode(encode(windowOf(kMaxWindowSteps))));
  EXPECT_FALSE(decode(encode(windowOf(kMaxWindowSteps + 1))));
  const auto samplesOf = [](std::size_t count) {
    return Frame{0, {ArrivalSamples{1, std::vector<ArrivalSample>(count)}}};
  };
  EXPECT_TRUE(decode(encode(samplesOf(kMaxSamples))));
  EXPECT_FALSE(decode(encode(samplesOf(kMaxSamples + 1))));
  const auto groupOf = [](std::size_t ranks) {
    return Frame{0, {GroupInfo{"0", "", "gloo", std::vector<int>(ranks)}}};
  };
  EXPECT_TRUE(decode(encode(groupOf(kMaxGroupRanks))));
  EXPECT_FALSE(decode(encode(groupOf(kMaxGroupRanks + 1))));
  EXPECT_TRUE(decode(encode({0, std::vector<Message>(kMaxMessages)})));
  EXPECT_FALSE(decode(encode({0, std::vector<Message>(kMaxMessages + 1)})));
}

TEST(Codec, textThatIsTooLongIsCutNotRefused) {
  // A description of the user's must not cost the frame that it travels in; no character is cut in two.
  const std::string text = std::string(kMaxStringBytes - 1, 'x') + "€";
  const auto frame = decode(encode({0, {GroupInfo{"0", text, "gloo", {0}}}}));
  ASSERT_TRUE(frame);
  EXPECT_EQ(std::get<GroupInfo>(frame->messages.front()).description, std::string(kMaxStringBytes - 1, 'x'));
}

TEST(Codec, textBeyondTheLimitIsRefused) {
  const auto hello = [](std::size_t length) {
    return handWritten(0, [length](ByteWriter& out) {
      out.varint(length);
      for (std::size_t i = 0; i < length; ++i) {
        out.byte('x');
      }
      out.signedVarint(1);
      out.text("", kMaxStringBytes);
    });
  };
  EXPECT_TRUE(decode(hello(kMaxStringBytes)));
  EXPECT_FALSE(decode(hello(kMaxStringBytes + 1)));
}

TEST(Codec, lengthBeyondWhatIsLeftIsRefusedWithoutTakingMemory) {
  EXPECT_FALSE(decode(handWritten(0, [](ByteWriter& out) { out.varint(UINT64_MAX); })));
  EXPECT_FALSE(decode(handWritten(1, [](ByteWriter& out) {
    out.text("0", kMaxStringBytes), out.text("", kMaxStringBytes), out.text("gloo", kMaxStringBytes),
        out.varint(kMaxGroupRanks);
  })));
}

TEST(Codec, lengthThatReachesAByteBeyondTheEndIsRefused) {
  for (const std::size_t length : {4U, 5U, 6U, 200U}) {
    const Bytes text = {'a', 'b', 'c'};
    EXPECT_FALSE(decode(handWritten(0, [&](ByteWriter& out) {
      out.varint(length);
      for (const auto c : text) {
        out.byte(c);
      }
    }))) << length;
  }
}

TEST(Codec, valuesWithoutASenseAreRefused) {
  const auto window = [](std::int64_t firstStep, std::uint64_t stride, std::uint8_t foundBy) {
    return handWritten(2, [=](ByteWriter& out) {
      out.signedVarint(firstStep), out.varint(stride), out.byte(foundBy), out.varint(1), out.varint(0);
      out.byte(0);
    });
  };
  EXPECT_TRUE(decode(window(0, 1, 3)));
  EXPECT_FALSE(decode(window(-1, 1, 3)));
  EXPECT_FALSE(decode(window(0, 0, 3)));
  EXPECT_FALSE(decode(window(0, std::uint64_t{1} << 32U, 3)));
  EXPECT_FALSE(decode(window(0, 1, 4)));
  const auto group = [](std::int64_t rank) {
    return handWritten(1, [=](ByteWriter& out) {
      out.text("0", kMaxStringBytes), out.text("", kMaxStringBytes), out.text("gloo", kMaxStringBytes), out.varint(1),
          out.signedVarint(rank);
    });
  };
  EXPECT_TRUE(decode(group(5)));
  EXPECT_FALSE(decode(group(-1)));
  EXPECT_FALSE(decode(group(std::int64_t{1} << 31U)));
}

TEST(Codec, extremeStepsAndTimesAreRefused) {
  const auto steps = [](std::int64_t firstStep) { return Frame{0, {StepWindow{firstStep, 1, {}, {1, 2}, 3}}}; };
  EXPECT_TRUE(decode(encode(steps(std::int64_t{1} << 40))));
  EXPECT_FALSE(decode(encode(steps(INT64_MAX))));
  const auto sample = [](std::int64_t arrivalNs, std::int64_t completedNs) {
    return Frame{0, {ArrivalSamples{1, {{{}, fromNanoseconds(arrivalNs), fromNanoseconds(completedNs)}}}}};
  };
  const std::int64_t tenYears = std::int64_t{10} * 365 * 24 * 3600 * 1'000'000'000;
  EXPECT_TRUE(decode(encode(sample(tenYears, tenYears + 1))));
  EXPECT_FALSE(decode(encode(sample(INT64_MAX / 2, INT64_MAX / 2))));
  EXPECT_FALSE(decode(encode(sample(INT64_MIN / 2, 0))));
  EXPECT_FALSE(decode(encode(sample(0, INT64_MAX / 2))));
}

// From a record they may be any. Meant for UndefinedBehaviorSanitizer.
TEST(Codec, timesFartherApartThanTheirTypeCanSayAreRefused) {
  for (const auto& [first, second] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {INT64_MIN, INT64_MAX}, {INT64_MAX, INT64_MIN}, {1, INT64_MIN}, {-2, INT64_MAX}}) {
    const ArrivalSample early{{}, fromNanoseconds(first), fromNanoseconds(second)};
    const ArrivalSample late{{}, fromNanoseconds(second), {}};
    EXPECT_FALSE(decode(encode({0, {ArrivalSamples{1, {early, late}}}})));
  }
}

TEST(Codec, rankBeyondAnIntIsRefused) {
  ByteWriter out;
  out.byte(kCodecVersion);
  out.varint(std::uint64_t{1} << 31U);
  out.varint(0);
  EXPECT_FALSE(decode(out.take()));
  EXPECT_FALSE(decode(encode({-1, {}})));
}

TEST(Bytes, varintsOfEveryLengthRoundTrip) {
  for (unsigned shift = 0; shift < 64; ++shift) {
    for (const std::uint64_t value : {std::uint64_t{1} << shift, (std::uint64_t{1} << shift) - 1}) {
      ByteWriter out;
      out.varint(value);
      out.signedVarint(static_cast<std::int64_t>(value));
      out.signedVarint(-static_cast<std::int64_t>(value >> 1U));
      const auto bytes = out.take();
      ByteReader in(bytes);
      EXPECT_EQ(in.varint(), value);
      EXPECT_EQ(in.signedVarint(), static_cast<std::int64_t>(value));
      EXPECT_EQ(in.signedVarint(), -static_cast<std::int64_t>(value >> 1U));
      EXPECT_TRUE(in.atEnd());
      EXPECT_FALSE(in.failed());
    }
  }
}

TEST(Bytes, varintWithoutAnEndFails) {
  const Bytes bytes(11, 0xFF);
  ByteReader in(bytes);
  EXPECT_EQ(in.varint(), 0U);
  EXPECT_TRUE(in.failed());
}

}  // namespace
}  // namespace straggler
