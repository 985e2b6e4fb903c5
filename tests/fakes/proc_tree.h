// ProcTree: a root folder with the files of /proc and /sys/fs/cgroup that a test writes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fakes/temporary_folder.h"

namespace straggler {

class ProcTree {
 public:
  static constexpr int kThread = 4711;

  // `path` from the root on, as "/proc/self/io".
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path().string() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void remove(const std::string& path) { std::filesystem::remove_all(folder_.path().string() + path); }
  std::string root() const { return folder_.path().string(); }

  static std::string thread(const std::string& name) {
    return "/proc/self/task/" + std::to_string(kThread) + "/" + name;
  }

  // Of a process or a thread.
  static std::string stat(std::uint64_t majorFaults, std::uint64_t blockIoTicks) {
    return "4711 (python) S 1 1 1 0 -1 4194304 101 5 " + std::to_string(majorFaults) +
           " 6 20 30 0 0 20 0 1 0 4956127 3133440 416 1 1 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0 " +
           std::to_string(blockIoTicks) + " 0 0 1 1 1 1 1 1 1 0\n";
  }
  static std::string io(std::uint64_t readCalls, std::uint64_t read) {
    return "rchar: " + std::to_string(readCalls) +
           "\nwchar: 0\nsyscr: 10\nsyscw: 0\nread_bytes: " + std::to_string(read) + "\nwrite_bytes: 0\n";
  }
  static std::string pressure(std::uint64_t some, std::uint64_t full) {
    return "some avg10=0.00 avg60=0.00 avg300=0.00 total=" + std::to_string(some) +
           "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=" + std::to_string(full) + "\n";
  }

  // A process with every file, on a kernel with everything on; of cgroup version 2.
  void writeAll() {
    write("/proc/sys/kernel/task_delayacct", "1\n");
    write(thread("schedstat"), "677840 40981 1\n");
    write(thread("status"), "Name:\tpython\nvoluntary_ctxt_switches:\t100\nnonvoluntary_ctxt_switches:\t20\n");
    write(thread("stat"), stat(3, 4));
    write(thread("children"), "");
    write("/proc/self/io", io(7000, 4096));
    write("/proc/self/net/dev",
          "a|b\n c|d\n lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n eth0: 50 1 0 0 0 0 0 0 60 1 0 0 0 0 0 0\n");
    write("/proc/self/net/snmp", "Tcp: InSegs RetransSegs\nTcp: 1 70\n");
    write("/proc/pressure/cpu", pressure(1, 2));
    write("/proc/pressure/io", pressure(3, 4));
    write("/proc/pressure/memory", pressure(5, 6));
    write("/proc/self/cgroup", "0::/pod/job\n");
    write("/sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
    write("/sys/fs/cgroup/pod/job/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 8\nthrottled_usec 9000\n");
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace straggler
