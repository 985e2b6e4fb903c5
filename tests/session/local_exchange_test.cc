#include "backend/session/local_exchange.h"

#include <gtest/gtest.h>

namespace straggler {
namespace {

std::vector<std::uint8_t> frame(std::size_t i) { return {static_cast<std::uint8_t>(i), 7}; }

TEST(LocalExchange, framesArriveInTheirOrder) {
  LocalExchange exchange;
  EXPECT_EQ(exchange.receive(), std::nullopt);
  EXPECT_EQ(exchange.send(frame(1)), Exchange::Sent::kYes);
  EXPECT_EQ(exchange.send(frame(2)), Exchange::Sent::kYes);
  EXPECT_EQ(exchange.receive(), frame(1));
  EXPECT_EQ(exchange.receive(), frame(2));
  EXPECT_EQ(exchange.receive(), std::nullopt);
}

TEST(LocalExchange, fullOneAsksForTheBytesAgain) {
  LocalExchange exchange;
  for (std::size_t i = 0; i < LocalExchange::kMaxFrames; ++i) {
    EXPECT_EQ(exchange.send(frame(i)), Exchange::Sent::kYes);
  }
  EXPECT_EQ(exchange.send(frame(0)), Exchange::Sent::kLater);
  (void)exchange.receive();
  EXPECT_EQ(exchange.send(frame(0)), Exchange::Sent::kYes);
}

TEST(LocalExchange, whatWasPublishedLastIsGivenOnce) {
  LocalExchange exchange;
  EXPECT_EQ(exchange.published(), std::nullopt);
  exchange.publish(frame(1), Exchange::Publication::kNews);
  exchange.publish(frame(2), Exchange::Publication::kFigures);
  EXPECT_EQ(exchange.published(), frame(2));
  EXPECT_EQ(exchange.published(), std::nullopt);
  exchange.publish(std::vector<std::uint8_t>(Exchange::kMaxPublished + 1), Exchange::Publication::kNews);
  EXPECT_EQ(exchange.published(), std::nullopt) << "more than that is not published";
}

TEST(LocalExchange, neverLeavesNorFails) {
  LocalExchange exchange;
  exchange.announceLeaving();
  EXPECT_FALSE(exchange.rootLeaving());
  EXPECT_EQ(exchange.lastError(), "");
}

}  // namespace
}  // namespace straggler
