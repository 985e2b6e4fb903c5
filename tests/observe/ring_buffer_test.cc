#include "backend/observe/ring_buffer.h"

#include <gtest/gtest.h>

namespace straggler {
namespace {

TEST(RingBuffer, workedExampleOfItsHeader) {
  RingBuffer<char> ring(3);
  EXPECT_EQ(ring.push('a'), 0U);
  EXPECT_EQ(ring.push('b'), 1U);
  EXPECT_EQ(ring.push('c'), 2U);
  EXPECT_EQ(ring.push('d'), std::nullopt);
  EXPECT_EQ(*ring.front(), 'a');
  ring.pop();
  EXPECT_EQ(ring.push('e'), 3U);
  EXPECT_EQ(ring.at(0), nullptr);
  EXPECT_EQ(*ring.at(3), 'e');
}

TEST(RingBuffer, fullRingRefusesTheNewestAndCountsIt) {
  RingBuffer<int> ring(2);
  ring.push(1);
  ring.push(2);
  EXPECT_FALSE(ring.push(3));
  EXPECT_FALSE(ring.push(4));
  EXPECT_EQ(ring.refused(), 2U);
  EXPECT_EQ(*ring.at(0), 1);
  EXPECT_EQ(*ring.at(1), 2);
  EXPECT_EQ(ring.size(), ring.capacity());
}

TEST(RingBuffer, ticketThatWasNeverGivenIsGone) {
  RingBuffer<int> ring(2);
  EXPECT_EQ(ring.at(0), nullptr);
  EXPECT_EQ(ring.at(~Ticket{0}), nullptr);
  EXPECT_EQ(ring.front(), nullptr);
}

TEST(RingBuffer, ticketsStayRightOverManyTurns) {
  RingBuffer<Ticket> ring(3);
  for (Ticket ticket = 0; ticket < 1000; ++ticket) {
    ASSERT_EQ(ring.push(ticket), ticket);
    if (ring.size() == 3) {
      ASSERT_EQ(*ring.front(), ring.begin());
      ring.pop();
    }
    for (Ticket held = ring.begin(); held < ring.end(); ++held) {
      ASSERT_EQ(*ring.at(held), held);
    }
  }
  EXPECT_EQ(ring.refused(), 0U);
}

}  // namespace
}  // namespace straggler
