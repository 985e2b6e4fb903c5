// Several threads write, another hands over: nothing is lost, nothing is counted twice. Meant for ThreadSanitizer.
#include <array>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "backend/observe/recorder.h"
#include "tests/fakes/operations.h"

namespace straggler {
namespace {

constexpr int kWriters = 4;
constexpr int kCallsEach = 5000;

// One thread's calls: synchronous ones, waited ones, abandoned ones, backwards and late completions.
void writeCalls(Recorder& recorder, int writer) {
  for (int i = 0; i < kCallsEach; ++i) {
    Operation operation = entered(i % 7 == 6 ? OpKind::kSend : OpKind::kAllReduce, i, static_cast<GroupId>(writer));
    operation.asynchronous = i % 2 == 1;
    operation.graphTask = i % 5 == 0 ? writer * kCallsEach + i : kNoGraphTask;
    const Ticket ticket = recorder.enter(operation);
    recorder.issued(ticket, at(i));
    recorder.completed(ticket, hostStamp(i), false);
    if (i % 4 == 1) {
      recorder.waiting(ticket, at(i));
      recorder.released(ticket, {at(i), StampSource::kWait});
    }
    recorder.abandoned(ticket);
    if (operation.graphTask != kNoGraphTask) {
      recorder.graphTaskReleased(operation.graphTask, at(i));
    }
    recorder.completed(ticket, hostStamp(i + 1), true);
  }
}

std::vector<Operation> runAll(Recorder& recorder) {
  std::vector<std::thread> writers;
  std::atomic<int> running{kWriters};
  for (int writer = 0; writer < kWriters; ++writer) {
    recorder.addGroup(static_cast<GroupId>(writer));
    writers.emplace_back([&recorder, &running, writer] {
      writeCalls(recorder, writer);
      --running;
    });
  }
  std::vector<Operation> operations;
  while (running > 0) {
    recorder.drain(operations, 64);
    (void)recorder.dropped();
  }
  for (auto& writer : writers) {
    writer.join();
  }
  recorder.drainAll(operations);
  return operations;
}

TEST(RecorderStress, everyCallIsHandedOverOnceInTheOrderOfItsGroup) {
  Recorder recorder;
  const auto operations = runAll(recorder);
  EXPECT_EQ(operations.size() + recorder.dropped(), std::size_t{kWriters} * kCallsEach);
  EXPECT_EQ(recorder.dropped(), 0U);
  std::array<std::uint64_t, kWriters> next{};
  std::uint64_t collectives = 0;
  for (const auto& operation : operations) {
    EXPECT_FALSE(operation.failed) << "only completions that came too late say so";
    if (isNumbered(operation.key.kind)) {
      ++collectives;
      EXPECT_EQ(operation.key.sequence, next.at(operation.key.group)++);
    }
  }
  EXPECT_EQ(recorder.collectives(), collectives);
}

TEST(RecorderStress, smallRingCountsExactlyWhatItDropped) {
  Recorder recorder(16);
  const auto operations = runAll(recorder);
  EXPECT_EQ(operations.size() + recorder.dropped(), std::size_t{kWriters} * kCallsEach);
  std::array<std::uint64_t, kWriters> last{};
  for (const auto& operation : operations) {
    if (isNumbered(operation.key.kind)) {
      EXPECT_GE(operation.key.sequence, last.at(operation.key.group)) << "numbers go on over what was dropped";
      last.at(operation.key.group) = operation.key.sequence;
    }
  }
}

}  // namespace
}  // namespace straggler
