#include "backend/observe/device_marks.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_device_event.h"
#include "tests/fakes/operations.h"

namespace straggler {
namespace {

class DeviceMarksTest : public testing::Test {
 protected:
  DeviceMarksTest() : marks_([this] { return device_.makeEvent(); }) {}

  // Marks `name` on a stream; what it is told ends up in stamps_.
  void mark(DeviceMarks::StreamKey stream, const std::string& name) {
    device_.stream = stream;
    marks_.mark(stream, [this, name](Stamp stamp) { stamps_.emplace_back(name, stamp); });
  }
  bool pollAt(double milliseconds) {
    clock_ = FakeClock(at(milliseconds));
    return marks_.poll(clock_);
  }
  std::vector<std::string> told() const {
    std::vector<std::string> names;
    for (const auto& [name, stamp] : stamps_) {
      names.push_back(name);
    }
    return names;
  }

  using Names = std::vector<std::string>;
  FakeDevice device_;
  FakeClock clock_;
  DeviceMarks marks_;
  std::vector<std::pair<std::string, Stamp>> stamps_;
};

TEST_F(DeviceMarksTest, markIsToldOnceAtTheFirstPollAfterItWasReached) {
  mark(1, "a");
  EXPECT_TRUE(pollAt(1));
  EXPECT_TRUE(stamps_.empty());
  device_.run(1, 1);
  EXPECT_FALSE(pollAt(2));
  EXPECT_FALSE(pollAt(3));
  ASSERT_EQ(told(), (Names{"a"}));
  EXPECT_EQ(stamps_[0].second.time, at(2));
  EXPECT_EQ(stamps_[0].second.source, StampSource::kDeviceEvent);
}

TEST_F(DeviceMarksTest, marksOfOneStreamAreToldInTheirOrder) {
  mark(1, "a");
  mark(1, "b");
  mark(1, "c");
  device_.run(1, 2);
  EXPECT_TRUE(pollAt(1));
  EXPECT_EQ(told(), (Names{"a", "b"}));
}

TEST_F(DeviceMarksTest, streamThatStandsStillDoesNotHoldUpAnother) {
  mark(1, "stuck");
  mark(2, "a");
  mark(2, "b");
  device_.run(2, 2);
  EXPECT_TRUE(pollAt(1));
  EXPECT_EQ(told(), (Names{"a", "b"}));
}

TEST_F(DeviceMarksTest, eventsAreUsedAgainAndNoneIsDestroyed) {
  for (int i = 0; i < 10'000; ++i) {
    mark(1, "a");
    device_.run(1, 1);
    pollAt(i);
  }
  EXPECT_EQ(stamps_.size(), 10'000U);
  EXPECT_EQ(device_.made, 1U);
  EXPECT_EQ(device_.destroyed, 0U);
}

TEST_F(DeviceMarksTest, tooManyOpenMarksAreUnknownAndTheOthersStay) {
  for (std::size_t i = 0; i < DeviceMarks::kMaxOpen; ++i) {
    mark(1, "open");
  }
  mark(1, "too many");
  ASSERT_EQ(told(), (Names{"too many"}));
  EXPECT_FALSE(stamps_[0].second.known());
  EXPECT_EQ(device_.made, DeviceMarks::kMaxOpen);

  device_.run(1, DeviceMarks::kMaxOpen);
  EXPECT_FALSE(pollAt(1));
  EXPECT_EQ(stamps_.size(), DeviceMarks::kMaxOpen + 1);
  mark(1, "again");
  device_.run(1, 1);
  pollAt(2);
  EXPECT_TRUE(stamps_.back().second.known());
}

TEST_F(DeviceMarksTest, deviceThatRefusesGivesAnUnknownStampAtOnce) {
  device_.refusesToMake = true;
  mark(1, "make");
  device_.refusesToMake = false;
  device_.refusesToRecord = true;
  mark(1, "record");
  ASSERT_EQ(told(), (Names{"make", "record"}));
  EXPECT_FALSE(stamps_[0].second.known());
  EXPECT_FALSE(stamps_[1].second.known());
  EXPECT_FALSE(pollAt(1));
}

TEST_F(DeviceMarksTest, deviceThatRefusedForAWhileIsUsedAgainAfterwards) {
  for (bool* refuses : {&device_.refusesToMake, &device_.refusesToRecord}) {
    *refuses = true;
    for (std::size_t i = 0; i < DeviceMarks::kMaxOpen; ++i) {
      mark(1, "refused");
    }
    *refuses = false;
  }
  mark(1, "a");
  device_.run(1, 1);
  pollAt(1);
  EXPECT_TRUE(stamps_.back().second.known());
}

TEST_F(DeviceMarksTest, deviceThatIsGoneTellsUnknownForAllOpenMarks) {
  mark(1, "a");
  mark(2, "b");
  device_.refusesToAnswer = true;
  EXPECT_FALSE(pollAt(1));
  ASSERT_EQ(stamps_.size(), 2U);
  EXPECT_FALSE(stamps_[0].second.known());
  EXPECT_FALSE(stamps_[1].second.known());
}

TEST_F(DeviceMarksTest, pollWithoutMarksHasNothingToLookAt) { EXPECT_FALSE(pollAt(1)); }

}  // namespace
}  // namespace straggler
