// OsAccount: reads what the kernel knows of this process, its training thread and its host, in totals. The monitor reads it
// once a window; a window has the difference of two readings.
//
//   schedstat, status, stat of the thread     ThreadTimes; switches, major faults, block I/O
//   io of the process and of its workers      bytes read; stat of the workers: their block I/O
//   net/dev, net/snmp                         bytes without the loopback, on which ranks of one host talk to each other and
//                                             which no slow link shows in; retransmits
//   pressure of the own control group, else of the host
//   cpu.stat of the own control group and of those above it that have a quota, version 2 or 1
//   the NVIDIA device that the process trains on, if it has one (nvml.h)
//
// Workers are the children of the training thread: a DataLoader forks them there, and the kernel lists them in one file
// (children, CONFIG_PROC_CHILDREN). A walk through all of /proc would cost as much as the host has processes. So those of a
// fork server are not seen. At most kWorkersARound are read a round, in turns, so a total may be some rounds old, and
// successive differences add up to the truth. What a worker had read before it was first seen is not counted.
//
// Block I/O is counted in the kernel's ticks (10 ms), and only where delay accounting was on when the thread began
// (sysctl kernel.task_delayacct): else it is absent. Kernels before 5.14 have no such switch, and do not tell a thread that
// was never blocked from delay accounting that is off: there it is absent until it is above zero.
//
// Cost: bench/micro/README.md. Nothing is held open between readings, so a fork inherits no descriptor.
//
// Contract: never throws; what cannot be read is absent. Thread safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/observe/os_counters.h"
#include "backend/session/nvml.h"
#include "backend/session/thread_times.h"

namespace straggler {

struct OsTotals {
  std::optional<ThreadTimes> thread;
  OsCounters counters;

  bool operator==(const OsTotals&) const = default;
};

class OsAccount {
 public:
  static constexpr std::size_t kWorkersARound = 2;
  static constexpr std::size_t kMaxWorkers = 256;
  static constexpr int kLookEvery = 64;  // rounds: for another control group, and for a device

  // `root` is in front of every path; tests put a tree of their own there.
  explicit OsAccount(std::string root = "", std::string nvml = Nvml::kLibrary) noexcept
      : root_(std::move(root)), nvml_(root_, std::move(nvml)) {}

  // `thread`: the training thread, by the kernel's id.
  OsTotals totals(int thread) noexcept;

 private:
  enum class BlockIo : std::uint8_t { kNotCounted, kIfNotZero, kCounted };
  struct Worker {
    std::optional<std::uint64_t> readBytes;
    std::optional<std::uint64_t> readCallBytes;
    std::optional<std::uint64_t> blockIoUs;
  };

  OsTotals read(int thread);
  std::string_view file(const std::string& path);
  void readThread(const std::string& folder, OsCounters& out);
  void readProcess(OsCounters& out);
  void readWorkers(const std::string& folder);
  void readWorker(int id, Worker& worker);
  void readNetwork(OsCounters& out);
  void readPressure(OsCounters& out);
  void readQuota(OsCounters& out);
  void readDevice(OsCounters& out);
  bool findGroups();
  void findBlockIo();
  void findPressure(const std::string& ownFolder);
  std::string existing(const std::string& mount, std::string_view path, const char* name);
  void addQuotas(const std::string& mount, std::string_view path, const char* quotaFile, const char* unlimited);
  std::optional<std::uint64_t> blockIoUs(std::string_view stat) const;

  std::string root_;
  std::array<char, 16384> buffer_{};  // a file that is larger is not known
  BlockIo blockIo_ = BlockIo::kNotCounted;
  std::map<int, Worker> workers_;  // by process id
  int lastWorker_ = 0;             // that was read
  Worker workersSum_;              // of all that were seen, since they were first
  int rounds_ = 0;
  std::optional<std::string> groupsText_;  // of /proc/self/cgroup, when the folders were found
  std::array<std::string, 3> pressure_{};  // files: cpu, io, memory
  std::vector<std::string> quotas_;        // folders
  bool quotaInNanoseconds_ = false;        // version 1
  Nvml nvml_;
};

}  // namespace straggler
