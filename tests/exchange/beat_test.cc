#include "backend/exchange/beat.h"

#include <random>

#include <gtest/gtest.h>

#include "backend/exchange/messages.h"
#include "tests/fakes/damage.h"
#include "tests/fakes/operations.h"

namespace straggler {
namespace {

const Beat kBeat{7, at(1e7), at(1e7 - 50), {0, 3, INT32_MAX}};

TEST(Beat, roundTrip) {
  EXPECT_EQ(decodeBeat(encodeBeat(kBeat)), kBeat);
  EXPECT_EQ(decodeBeat(encodeBeat(Beat{})), Beat{});
}

TEST(Beat, whatIsNoneIsRefused) {
  EXPECT_FALSE(decodeBeat({}));
  auto bytes = encodeBeat(kBeat);
  bytes.push_back(0);
  EXPECT_FALSE(decodeBeat(bytes)) << "bytes left over";
  bytes.resize(bytes.size() - 2);
  EXPECT_FALSE(decodeBeat(bytes)) << "torn";
  EXPECT_TRUE(decodeBeat(encodeBeat({1, {}, {}, std::vector<int>(kMaxAsked)})));
  EXPECT_FALSE(decodeBeat(encodeBeat({1, {}, {}, std::vector<int>(kMaxAsked + 1)})));
  EXPECT_FALSE(decodeBeat(encodeBeat({1, {}, {}, {-1}})));
  EXPECT_TRUE(decodeBeat(encodeBeat({1, fromNanoseconds(kMaxTime), fromNanoseconds(-kMaxTime), {}})));
  EXPECT_FALSE(decodeBeat(encodeBeat({1, fromNanoseconds(kMaxTime + 1), {}, {}})));
  EXPECT_FALSE(decodeBeat(encodeBeat({1, {}, fromNanoseconds(INT64_MIN), {}})));
}

TEST(Beat, damagedBytesNeverCrash) {
  const auto whole = encodeBeat(kBeat);
  std::mt19937 random(20261201);
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    accepted += decodeBeat(damaged(whole, random)) ? 1 : 0;
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace straggler
