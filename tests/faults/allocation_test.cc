// No memory, at every place of ours in turn: nothing is thrown where training would meet it, no process ends, and what was
// lost is said or counted.
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backend/observe/device_marks.h"
#include "backend/observe/recorder.h"
#include "backend/session/session.h"
#include "tests/fakes/failing_new.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_device_event.h"
#include "tests/fakes/operations.h"
#include "tests/fakes/sessions.h"

namespace straggler {
namespace {

constexpr const char* kGroup = "0";

// ---- The recorder ----

TEST(NoMemory, recorderAsksForNoneWhereItIsWrittenInto) {
  Recorder recorder(64);
  recorder.addGroup(1);
  std::size_t asked = 0;
  {
    const FailingNew none(FailingNew::Plan{});
    for (int i = 0; i < 100; ++i) {  // more than it holds
      const Ticket ticket = recorder.enter(bucket(i, i, i + 1));
      recorder.arrived(ticket, hostStamp(i));
      recorder.issued(ticket, at(i));
      recorder.waiting(ticket, at(i));
      recorder.completed(ticket, hostStamp(i), false);
      recorder.released(ticket, hostStamp(i));
      recorder.abandoned(ticket);
      recorder.failed(recorder.enter(entered(OpKind::kSend, i)));
      recorder.graphTaskReleased(i, at(i));
      recorder.fetched({at(i), at(i + 1)});
      recorder.sawCapture();
    }
    asked = FailingNew::asked();
  }
  EXPECT_EQ(asked, 0U);
  EXPECT_EQ(recorder.collectives(), 100U);
  EXPECT_EQ(recorder.dropped(), 200U - 64U);
}

// What is drained with too little memory is not lost: it is there at the next turn, or was handed over.
TEST(NoMemory, drainingLosesNothing) {
  for (std::size_t succeed = 0; succeed < 8; ++succeed) {
    Recorder recorder(64);
    recorder.addGroup(1);
    for (int i = 0; i < 40; ++i) {
      recorder.enter(synchronous(i, i + 1));
    }
    std::vector<Operation> out;
    {
      const FailingNew little({.succeed = succeed});
      try {
        recorder.drain(out, 64);
      } catch (const std::bad_alloc&) {
      }
    }
    recorder.drain(out, 64);
    ASSERT_EQ(out.size(), 40U);
    for (std::size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(out[i].key.sequence, i);
    }
  }
}

TEST(NoMemory, everyMarkOfADeviceIsAnsweredOnce) {
  for (std::size_t succeed = 0; succeed < 40; ++succeed) {
    FakeDevice device;
    FakeClock clock{at(1)};
    DeviceMarks marks([&device] { return device.makeEvent(); });
    std::vector<int> answers(6, 0);
    device.run(device.stream, answers.size());  // each is done as soon as it is recorded
    {
      const FailingNew little({.succeed = succeed, .fail = 3});
      for (int& count : answers) {
        marks.mark(device.stream, [&count](Stamp) { ++count; });
      }
      marks.poll(clock);
    }
    while (marks.poll(clock)) {
    }
    EXPECT_EQ(answers, std::vector<int>(6, 1)) << "after " << succeed << " allocations";
  }
}

// ---- Sessions ----

TEST(NoMemory, groupThatFindsNoneIsNotRecordedAndTheSessionGoesOn) {
  for (const std::size_t fail : {std::size_t{1}, FailingNew::kAll}) {
    SessionOutput output;
    const auto session = joinSession({kGroup, "", "gloo", {0}}, [&output] { return output.options(); });
    const std::string name = "a name that is too long to be kept without memory of its own";
    const GroupInfo group{name, name, name, {0}};
    bool hit = true;
    for (std::size_t succeed = 0; hit; ++succeed) {
      const FailingNew little({.succeed = succeed, .fail = fail});
      session->addGroup(group);
      hit = FailingNew::failed() > 0;
    }
    output.recorder->failed(output.recorder->enter(entered(OpKind::kAllReduce, 1, groupId(kGroup))));
    leaveSession(session);
    EXPECT_NE(lastReport().value_or("").find(R"("collectives":1,)"), std::string::npos);
    EXPECT_EQ(output.count("a group is not recorded: std::bad_alloc; training goes on") > 0, fail == 1)
        << "said where there is memory for the line";
  }
}

TEST(NoMemory, mitigationThatFindsNoneIsNotReportedAndTheSessionGoesOn) {
  SessionOutput output;
  const auto session = joinSession({kGroup, "", "gloo", {0}}, [&output] { return output.options(); });
  MitigationSource source = [] { return MitigationSummary{true, "carry", "group 0"}; };
  {
    const FailingNew little({.fail = 1});
    session->setMitigation(std::move(source));
    EXPECT_EQ(FailingNew::failed(), 1U);
  }
  leaveSession(session);
  EXPECT_EQ(output.count("what mitigation does is not reported: std::bad_alloc; training goes on"), 1U);
  EXPECT_EQ(output.count("Mitigation (carry)"), 0U);
}

TEST(NoMemory, sessionThatFindsNoneForItsRingIsNotMadeAndTheNextOneIs) {
  SessionOutput output;
  const auto join = [&output] {
    return joinSession({kGroup, "", "gloo", {0}}, [&output] { return output.options(); });
  };
  {
    const FailingNew little({.larger = std::size_t{1} << 20});
    EXPECT_THROW(join(), std::bad_alloc);
  }
  const auto session = join();
  ASSERT_NE(session, nullptr);
  leaveSession(session);
}

// Memory runs out on the monitor's thread, from within its poller; after so many allocations.
class OnTheMonitor final : public Poller {
 public:
  explicit OnTheMonitor(FailingNew::Plan plan) : plan_(plan) {}
  bool poll() noexcept override {
    if (!std::exchange(begun_, true)) {
      FailingNew::begin(plan_);
    }
    return true;
  }

 private:
  FailingNew::Plan plan_;
  bool begun_ = false;
};

// The same on the collector's, from within its transport.
class OnTheCollector final : public Exchange {
 public:
  explicit OnTheCollector(FailingNew::Plan plan) : plan_(plan) {}
  std::optional<std::vector<std::uint8_t>> receive() noexcept override {
    if (!std::exchange(begun_, true)) {
      FailingNew::begin(plan_);
    }
    return std::nullopt;
  }
  Sent send(std::span<const std::uint8_t> /*bytes*/) noexcept override { return Sent::kYes; }
  bool rootLeaving() noexcept override { return false; }
  std::string lastError() const override { return {}; }
  void announceLeaving() noexcept override {}
  void publish(std::span<const std::uint8_t> /*bytes*/, Publication /*publication*/) noexcept override {}
  std::optional<std::vector<std::uint8_t>> published() noexcept override { return std::nullopt; }

 private:
  FailingNew::Plan plan_;
  bool begun_ = false;
};

struct Trial {
  SessionOutput output;
  TemporaryFolder folder;
  std::unique_ptr<Session> session;
};

// Sessions at once, each with less memory than the next, on one of its threads. `arm` gives each its fault.
template <class Arm>
void expectTrainingGoesOn(std::size_t fail, const char* stopped, const Arm& arm) {
  constexpr std::size_t kTrials = 24;
  std::vector<std::unique_ptr<Trial>> trials;
  for (std::size_t i = 0; i < kTrials; ++i) {
    auto& trial = *trials.emplace_back(std::make_unique<Trial>());
    trial.output.settings.directory = trial.folder.path().string();
    arm(trial.output, FailingNew::Plan{.succeed = i * i, .fail = fail});
    trial.session = std::make_unique<Session>(trial.output.options());
    trial.session->addGroup({kGroup, "", "gloo", {0}});
  }
  for (int i = 0; i < 50; ++i) {
    for (auto& trial : trials) {
      auto& recorder = *trial->output.recorder;
      const Ticket ticket = recorder.enter(entered(OpKind::kAllReduce, i, groupId(kGroup)));
      ASSERT_NE(ticket, kNoTicket);
      recorder.completed(ticket, hostStamp(i + 1), false);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> ends;
  ends.reserve(kTrials);
  for (auto& trial : trials) {
    ends.emplace_back([&trial] { trial->session->end(); });
  }
  for (auto& end : ends) {
    end.join();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  std::size_t said = 0;
  for (auto& trial : trials) {
    EXPECT_LE(trial->output.count("stopped: "), 1U) << trial->output.text();
    EXPECT_EQ(trial->output.count("left behind"), 0U) << trial->output.text();
    EXPECT_TRUE(trial->session->report());
    said += trial->output.count(std::string("the ") + stopped + " stopped: std::bad_alloc; training goes on");
  }
  EXPECT_EQ(said > 0, fail == 1) << "else no trial ran out of memory, or there was memory for the line";
}

TEST(NoMemory, monitorThatFindsNoneEndsAndTrainingGoesOn) {
  for (const std::size_t fail : {std::size_t{1}, FailingNew::kAll}) {
    expectTrainingGoesOn(fail, "monitor", [](SessionOutput& output, FailingNew::Plan plan) {
      output.poller = std::make_shared<OnTheMonitor>(plan);
    });
  }
}

TEST(NoMemory, collectorThatFindsNoneEndsAndTrainingGoesOn) {
  for (const std::size_t fail : {std::size_t{1}, FailingNew::kAll}) {
    expectTrainingGoesOn(fail, "collector", [](SessionOutput& output, FailingNew::Plan plan) {
      output.ranks = {0, 1};
      output.exchange = std::make_shared<OnTheCollector>(plan);
    });
  }
}

}  // namespace
}  // namespace straggler
