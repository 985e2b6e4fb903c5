#include "backend/report/log_queue.h"

#include <thread>

#include <gtest/gtest.h>

namespace straggler {
namespace {

using Line = LogQueue::Line;

constexpr Duration kLong = std::chrono::seconds(20);

Line numbered(std::size_t number) { return {Severity::kInfo, std::to_string(number)}; }

TEST(LogQueue, linesAreTakenInTheirOrder) {
  LogQueue queue;
  EXPECT_TRUE(queue.push(numbered(1)));
  EXPECT_TRUE(queue.push({Severity::kWarning, "2"}));
  EXPECT_EQ(queue.take(), numbered(1));
  EXPECT_EQ(queue.take(), (Line{Severity::kWarning, "2"}));
}

TEST(LogQueue, fullOneDropsAndSaysSoWhenThereIsRoomAgain) {
  LogQueue queue;
  for (std::size_t i = 0; i < LogQueue::kMaxLines + 3; ++i) {
    EXPECT_TRUE(queue.push(numbered(i)));
  }
  EXPECT_EQ(queue.take(), numbered(0));
  EXPECT_TRUE(queue.push({Severity::kInfo, "later"}));
  for (std::size_t i = 1; i < LogQueue::kMaxLines; ++i) {
    EXPECT_EQ(queue.take(), numbered(i));
  }
  EXPECT_EQ(queue.take()->text, "straggler: 3 lines were dropped: they were not taken as fast as they came");
  EXPECT_EQ(queue.take()->text, "later");
}

TEST(LogQueue, whatWasDroppedIsSaidEvenIfNothingFollows) {
  LogQueue queue;
  for (std::size_t i = 0; i < LogQueue::kMaxLines + 2; ++i) {
    queue.push(numbered(i));
  }
  for (std::size_t i = 0; i < LogQueue::kMaxLines; ++i) {
    EXPECT_EQ(queue.take(), numbered(i));
  }
  EXPECT_EQ(queue.take()->severity, Severity::kWarning);
}

TEST(LogQueue, lineThatWasTakenIsOutOnlyOnceItIsDelivered) {
  LogQueue queue;
  EXPECT_TRUE(queue.waitUntilOut({}));
  queue.push(numbered(1));
  EXPECT_FALSE(queue.waitUntilOut({}));
  queue.take();
  EXPECT_FALSE(queue.waitUntilOut({}));
  queue.delivered();
  EXPECT_TRUE(queue.waitUntilOut({}));
}

TEST(LogQueue, stoppedOneGivesWhatNobodyTookAndRefusesMore) {
  LogQueue queue;
  queue.push(numbered(1));
  queue.push(numbered(2));
  queue.take();
  EXPECT_EQ(queue.stop(), std::vector<Line>{numbered(2)});
  EXPECT_FALSE(queue.push(numbered(3)));
  EXPECT_EQ(queue.take(), std::nullopt);
  EXPECT_TRUE(queue.stop().empty());
  EXPECT_TRUE(queue.waitUntilOut({})) << "the line underway is waited for no more";
}

TEST(LogQueue, theCarrierWakesUpForALineAndForTheStop) {
  LogQueue queue;
  std::vector<Line> carried;
  std::thread carrier([&] {
    while (const auto line = queue.take()) {
      carried.push_back(*line);
      queue.delivered();
    }
  });
  queue.push(numbered(1));
  EXPECT_TRUE(queue.waitUntilOut(kLong));
  queue.push(numbered(2));
  EXPECT_TRUE(queue.waitUntilOut(kLong));
  EXPECT_TRUE(queue.stop().empty());
  carrier.join();
  EXPECT_EQ(carried, (std::vector<Line>{numbered(1), numbered(2)}));
}

}  // namespace
}  // namespace straggler
