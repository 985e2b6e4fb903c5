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
  queue.push(numbered(1));
  EXPECT_FALSE(queue.retire({}));
  queue.take();
  EXPECT_FALSE(queue.retire({}));
  queue.delivered();
  EXPECT_TRUE(queue.retire({}));
}

TEST(LogQueue, retiredOneKeepsNewLinesForTheNextCarrier) {
  LogQueue queue;
  EXPECT_TRUE(queue.retire({}));
  EXPECT_TRUE(queue.push(numbered(1)));
  EXPECT_EQ(queue.take(), std::nullopt);
  EXPECT_FALSE(queue.retire({})) << "a line waits";
  EXPECT_TRUE(queue.isRetired()) << "but its carrier is on its way home";
  queue.resume();
  EXPECT_FALSE(queue.isRetired());
  EXPECT_EQ(queue.take(), numbered(1));
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
  EXPECT_FALSE(queue.retire(kLong)) << "the line underway is waited for no more, and its carrier cannot be joined";
}

TEST(LogQueue, theCarrierWakesUpForALineAndWhenItIsRetired) {
  LogQueue queue;
  std::vector<Line> carried;
  for (std::size_t i = 0; i < 100; ++i) {
    queue.resume();
    std::thread carrier([&] {
      while (const auto line = queue.take()) {
        carried.push_back(*line);
        queue.delivered();
      }
    });
    queue.push(numbered(i));
    EXPECT_TRUE(queue.retire(kLong));
    carrier.join();
    EXPECT_EQ(carried.back(), numbered(i));
  }
}

}  // namespace
}  // namespace straggler
