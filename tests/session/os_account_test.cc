// What is read, from a tree of files that the test writes; and on the kernel that the tests run on.
#include "backend/session/os_account.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fakes/damage.h"
#include "tests/fakes/fake_nvml.h"
#include "tests/fakes/proc_tree.h"

namespace straggler {
namespace {

class OsAccountTest : public testing::Test {
 protected:
  OsAccountTest() { tree_.writeAll(); }

  OsCounters counters() { return account_.totals(ProcTree::kThread).counters; }
  void writeWorker(int id, std::uint64_t readCalls, std::uint64_t read, std::uint64_t blockIoTicks) {
    const std::string folder = "/proc/" + std::to_string(id) + "/";
    tree_.write(folder + "io", ProcTree::io(readCalls, read));
    tree_.write(folder + "stat", ProcTree::stat(0, blockIoTicks));
  }
  void writeChildren(const std::string& ids) { tree_.write(ProcTree::thread("children"), ids); }

  ProcTree tree_;
  OsAccount account_{tree_.root()};
};

TEST_F(OsAccountTest, everythingThatTheKernelGivesIsRead) {
  const OsTotals totals = account_.totals(ProcTree::kThread);
  EXPECT_EQ(totals.thread, (ThreadTimes{Duration(677840), Duration(40981)}));
  const std::vector<std::optional<std::uint64_t>> expected = {
      100, 20, 3, 40'000, std::nullopt, 4096, 7000, 50, 60, 70, 1, 3, 4, 5, 6, 8, 9000, {}, {}, {}, {}};
  for (const OsCounter counter : allOsCounters()) {
    EXPECT_EQ(totals.counters[counter], expected[static_cast<std::size_t>(counter)]) << totalField(counter);
  }
}

TEST_F(OsAccountTest, whatTheKernelDoesNotGiveIsAbsentAndTheRestIsThere) {
  const OsCounters all = counters();
  const std::vector<std::pair<std::string, std::vector<OsCounter>>> files = {
      {ProcTree::thread("status"), {OsCounter::kVoluntarySwitches, OsCounter::kInvoluntarySwitches}},
      {ProcTree::thread("stat"), {OsCounter::kMajorFaults, OsCounter::kBlockIo}},
      {"/proc/self/io", {OsCounter::kReadBytes, OsCounter::kReadCallBytes}},
      {"/proc/self/net/dev", {OsCounter::kReceivedBytes, OsCounter::kSentBytes}},
      {"/proc/self/net/snmp", {OsCounter::kRetransmits}},
      {"/proc/pressure/cpu", {OsCounter::kCpuPressure}},
      {"/proc/pressure/io", {OsCounter::kIoPressure, OsCounter::kIoFullPressure}},
      {"/proc/pressure/memory", {OsCounter::kMemoryPressure, OsCounter::kMemoryFullPressure}},
      {"/sys/fs/cgroup/pod/job/cpu.stat", {OsCounter::kQuotaThrottles, OsCounter::kQuotaThrottled}},
  };
  for (const auto& [path, missing] : files) {
    for (const bool removed : {true, false}) {
      SCOPED_TRACE(path + (removed ? " removed" : " empty"));
      ProcTree tree;
      tree.writeAll();
      removed ? tree.remove(path) : tree.write(path, "");
      OsCounters expected = all;
      for (const OsCounter counter : missing) {
        expected[counter] = std::nullopt;
      }
      EXPECT_EQ(OsAccount(tree.root()).totals(ProcTree::kThread).counters, expected);
    }
  }
}

TEST_F(OsAccountTest, treeWithoutAnythingGivesNothing) {
  const ProcTree empty;
  EXPECT_EQ(OsAccount(empty.root()).totals(ProcTree::kThread), OsTotals{});
}

TEST_F(OsAccountTest, fileBeyondAllBoundsIsNotKnown) {
  tree_.write("/proc/self/net/dev", std::string(20'000, '\n') + " eth0: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n");
  EXPECT_FALSE(counters()[OsCounter::kReceivedBytes]);
}

// ---- Block I/O ----

TEST_F(OsAccountTest, blockIoIsAbsentWhereItIsNotAccountedFor) {
  tree_.write("/proc/sys/kernel/task_delayacct", "0\n");
  EXPECT_FALSE(OsAccount(tree_.root()).totals(ProcTree::kThread).counters[OsCounter::kBlockIo]);
}

TEST_F(OsAccountTest, zeroBlockIoIsKnownOnlyWhereItIsAccountedFor) {
  tree_.write(ProcTree::thread("stat"), ProcTree::stat(3, 0));
  EXPECT_EQ(OsAccount(tree_.root()).totals(ProcTree::kThread).counters[OsCounter::kBlockIo], 0U);
  tree_.remove("/proc/sys/kernel/task_delayacct");
  OsAccount older(tree_.root());
  EXPECT_FALSE(older.totals(ProcTree::kThread).counters[OsCounter::kBlockIo]);
  tree_.write(ProcTree::thread("stat"), ProcTree::stat(3, 2));
  EXPECT_EQ(older.totals(ProcTree::kThread).counters[OsCounter::kBlockIo], 20'000U);
}

// ---- Workers ----

TEST_F(OsAccountTest, workersCountFromWhenTheyAreFirstSeen) {
  EXPECT_FALSE(counters()[OsCounter::kWorkersBlockIo]) << "there are none";
  writeChildren("50 51 ");
  writeWorker(50, 1000, 100, 7);
  writeWorker(51, 2000, 200, 0);
  EXPECT_EQ(counters()[OsCounter::kReadBytes], 4096U);
  writeWorker(50, 1500, 130, 9);
  writeWorker(51, 2001, 205, 1);
  const OsCounters after = counters();
  EXPECT_EQ(after[OsCounter::kReadBytes], 4096U + 30 + 5);
  EXPECT_EQ(after[OsCounter::kReadCallBytes], 7000U + 500 + 1);
  EXPECT_EQ(after[OsCounter::kWorkersBlockIo], 30'000U);
}

TEST_F(OsAccountTest, whatAWorkerHasReadStaysCountedOnceItHasEnded) {
  writeChildren("50");
  writeWorker(50, 0, 0, 0);
  counters();
  writeWorker(50, 0, 500, 0);
  counters();
  writeChildren("");
  tree_.remove("/proc/50");
  EXPECT_EQ(counters()[OsCounter::kReadBytes], 4096U + 500);
}

TEST_F(OsAccountTest, manyWorkersAreReadInTurnsAndNoneIsForgotten) {
  constexpr std::uint64_t kWorkers = 3 * OsAccount::kWorkersARound;
  std::string ids;
  for (std::uint64_t id = 50; id < 50 + kWorkers; ++id) {
    ids += std::to_string(id) + " ";
    writeWorker(static_cast<int>(id), 0, 0, 0);
  }
  writeChildren(ids);
  for (int round = 0; round < 3; ++round) {
    counters();
  }
  for (std::uint64_t id = 50; id < 50 + kWorkers; ++id) {
    writeWorker(static_cast<int>(id), 0, 10, 0);
  }
  for (std::uint64_t round = 1; round <= 3; ++round) {
    EXPECT_EQ(counters()[OsCounter::kReadBytes], 4096U + 10 * round * OsAccount::kWorkersARound);
  }
}

TEST_F(OsAccountTest, workerWhoseTotalsBeganAnewIsAnotherProcess) {
  writeChildren("50");
  writeWorker(50, 0, 1000, 0);
  counters();
  writeWorker(50, 0, 10, 0);
  EXPECT_EQ(counters()[OsCounter::kReadBytes], 4096U);
  writeWorker(50, 0, 15, 0);
  EXPECT_EQ(counters()[OsCounter::kReadBytes], 4096U + 5);
}

// ---- Control groups ----

TEST_F(OsAccountTest, pressureOfTheOwnGroupComesBeforeThatOfTheHost) {
  tree_.write("/sys/fs/cgroup/pod/job/cpu.pressure", ProcTree::pressure(11, 12));
  tree_.write("/sys/fs/cgroup/pod/job/io.pressure", ProcTree::pressure(13, 14));
  tree_.write("/sys/fs/cgroup/pod/job/memory.pressure", ProcTree::pressure(15, 16));
  EXPECT_EQ(counters()[OsCounter::kCpuPressure], 11U);
  EXPECT_EQ(counters()[OsCounter::kIoFullPressure], 14U);
  EXPECT_EQ(counters()[OsCounter::kMemoryPressure], 15U);
}

TEST_F(OsAccountTest, quotaOfAGroupAboveCountsAndOneWithoutAQuotaDoesNot) {
  tree_.write("/sys/fs/cgroup/pod/cpu.stat", "nr_throttled 100\nthrottled_usec 5\n");
  tree_.write("/sys/fs/cgroup/pod/cpu.max", "max 100000\n");
  EXPECT_EQ(counters()[OsCounter::kQuotaThrottles], 8U);
  tree_.write("/sys/fs/cgroup/pod/cpu.max", "50000 100000\n");
  EXPECT_EQ(OsAccount(tree_.root()).totals(ProcTree::kThread).counters[OsCounter::kQuotaThrottles], 108U);
}

TEST_F(OsAccountTest, inAContainerThePathMayBeTheHostsAndWhatIsMountedIsTheContainers) {
  tree_.write("/proc/self/cgroup", "0::/kubepods/pod7/abc\n");
  tree_.write("/sys/fs/cgroup/cpu.stat", "nr_throttled 3\nthrottled_usec 4\n");
  EXPECT_EQ(counters()[OsCounter::kQuotaThrottles], 3U);
}

TEST_F(OsAccountTest, versionOneCountsInNanoseconds) {
  tree_.remove("/sys/fs/cgroup");
  tree_.write("/proc/self/cgroup", "3:cpu,cpuacct:/docker/1f\n0::/docker/1f\n");
  tree_.write("/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 7000000\n");
  EXPECT_EQ(counters()[OsCounter::kQuotaThrottles], 2U);
  EXPECT_EQ(counters()[OsCounter::kQuotaThrottled], 7000U);
}

TEST_F(OsAccountTest, totalsOfAnotherGroupAreNoContinuation) {
  counters();
  tree_.write("/proc/self/cgroup", "0::/pod/other\n");
  tree_.write("/sys/fs/cgroup/pod/other/cpu.stat", "nr_throttled 1000\nthrottled_usec 1\n");
  std::vector<std::optional<std::uint64_t>> seen;
  for (int round = 1; round < 2 * OsAccount::kLookEvery; ++round) {
    const auto throttles = counters()[OsCounter::kQuotaThrottles];
    if (seen.empty() || seen.back() != throttles) {
      seen.push_back(throttles);
    }
  }
  EXPECT_EQ(seen, (std::vector<std::optional<std::uint64_t>>{8, std::nullopt, 1000}));
}

// ---- The device ----

TEST_F(OsAccountTest, stateOfTheDeviceIsThatOfTheReading) {
  auto& fake = *static_cast<FakeNvml*>(dlsym(dlopen(STRAGGLER_FAKE_NVML, RTLD_NOW), "fakeNvml"));
  fake = {};
  fake.devices = 1;
  fake.device[0] = {.minorNumber = 0, .smClockMhz = 1980, .temperatureC = 61, .reasons = 0x20};
  tree_.write("/dev/nvidiactl", "");
  tree_.write("/proc/self/fd/0", "");
  std::filesystem::create_symlink("/dev/nvidia0", tree_.root() + "/proc/self/fd/9");
  OsAccount account(tree_.root(), STRAGGLER_FAKE_NVML);
  const OsCounters before = account.totals(ProcTree::kThread).counters;
  EXPECT_EQ(before[OsCounter::kSmClock], 1980U);
  fake.device[0].smClockMhz = 1200;
  const OsCounters now = account.totals(ProcTree::kThread).counters.since(before);
  EXPECT_EQ(now[OsCounter::kSmClock], 1200U) << "no difference";
  EXPECT_EQ(now[OsCounter::kDeviceTemperature], 61U);
  EXPECT_EQ(now[OsCounter::kDeviceSlowedByHeat], 1U);
  EXPECT_EQ(now[OsCounter::kDeviceSlowedByPower], 0U);
}

// ---- Damage, and the kernel here ----

TEST_F(OsAccountTest, damagedFilesNeverCrashIt) {
  std::mt19937 random(4711);
  std::vector<std::pair<std::string, std::string>> whole;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tree_.root())) {
    if (entry.is_regular_file()) {
      std::ifstream file(entry.path());
      whole.emplace_back(entry.path().string().substr(tree_.root().size()),
                         std::string(std::istreambuf_iterator<char>(file), {}));
    }
  }
  ASSERT_GT(whole.size(), 10U);
  for (int i = 0; i < 300; ++i) {
    for (const auto& [path, text] : whole) {
      const auto bytes = damaged(std::vector<std::uint8_t>(text.begin(), text.end()), random);
      tree_.write(path, std::string(bytes.begin(), bytes.end()));
    }
    (void)OsAccount(tree_.root()).totals(ProcTree::kThread);
    (void)counters();
  }
}

TEST(OsAccountHere, sleepsOfTheThreadAreVoluntarySwitches) {
  OsAccount account;
  const auto before = account.totals(gettid()).counters[OsCounter::kVoluntarySwitches];
  ASSERT_TRUE(before) << "/proc/self/task/*/status";
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_GE(*account.totals(gettid()).counters[OsCounter::kVoluntarySwitches] - *before, 20U);
}

TEST(OsAccountHere, readsOfTheProcessAndOfItsWorkersAreCounted) {
  constexpr std::size_t kBytes = 1 << 20;
  const auto readZeros = [] {
    std::vector<char> bytes(kBytes);
    const int file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    const bool whole = ::read(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(kBytes);
    close(file);
    return whole;
  };
  OsAccount account;
  int start[2];
  int done[2];
  ASSERT_EQ(pipe(start) + pipe(done), 0);
  const pid_t worker = fork();
  if (worker == 0) {
    char byte = 0;
    const bool went = ::read(start[0], &byte, 1) == 1 && readZeros() && write(done[1], &byte, 1) == 1;
    (void)!::read(start[0], &byte, 1);
    _exit(went ? 0 : 1);
  }
  char byte = 'x';
  const auto before = account.totals(gettid()).counters[OsCounter::kReadCallBytes];
  ASSERT_TRUE(before) << "/proc/self/io";
  ASSERT_TRUE(readZeros());
  const auto own = account.totals(gettid()).counters[OsCounter::kReadCallBytes];
  EXPECT_GE(*own - *before, kBytes);
  EXPECT_LT(*own - *before, 2 * kBytes);
  ASSERT_EQ(write(start[1], &byte, 1), 1);
  ASSERT_EQ(::read(done[0], &byte, 1), 1);
  EXPECT_GE(*account.totals(gettid()).counters[OsCounter::kReadCallBytes] - *own, kBytes) << "of the worker";
  ASSERT_EQ(write(start[1], &byte, 1), 1);
  waitpid(worker, nullptr, 0);
  for (const int descriptor : {start[0], start[1], done[0], done[1]}) {
    close(descriptor);
  }
}

TEST(OsAccountHere, threadThatWaitsForADiskWasBlockedByIt) {
  const TemporaryFolder folder;
  const std::string path = (folder / "file").string();
  constexpr std::size_t kBytes = 16 << 20;
  std::ofstream(path) << std::string(kBytes, 'x');
  const int file = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  std::string switchedOn;
  std::ifstream("/proc/sys/kernel/task_delayacct") >> switchedOn;
  if (file < 0 || switchedOn != "1") {
    close(file);
    GTEST_SKIP() << "sysctl kernel.task_delayacct=1, and TMPDIR on a disk, then run it again";
  }
  fsync(file);
  OsAccount account;
  const OsCounters before = account.totals(gettid()).counters;
  alignas(4096) static std::array<char, 1 << 16> bytes;
  while (::read(file, bytes.data(), bytes.size()) > 0) {
  }
  close(file);
  const OsCounters read = account.totals(gettid()).counters.since(before);
  EXPECT_GE(read[OsCounter::kReadBytes], kBytes);
  EXPECT_GE(read[OsCounter::kBlockIo], 10'000U) << "one tick";
}

// At most some 100 us are meant, of the monitor's thread, once a window (bench/micro/README.md); the machine may be busy.
TEST(OsAccountHere, readingCostsLittle) {
  OsAccount account;
  std::vector<double> microseconds;
  for (int i = 0; i < 201; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    (void)account.totals(gettid());
    microseconds.push_back(toMilliseconds(std::chrono::steady_clock::now() - begun) * 1e3);
  }
  std::nth_element(microseconds.begin(), microseconds.begin() + 100, microseconds.end());
  RecordProperty("median_us", std::to_string(microseconds[100]));
  EXPECT_LT(microseconds[100], 1000);
}

}  // namespace
}  // namespace straggler
