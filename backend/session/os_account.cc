#include "backend/session/os_account.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>

#include "backend/session/proc_text.h"

namespace straggler {
namespace {

constexpr std::size_t kMaxGroupsAbove = 8;
constexpr std::uint64_t kMostTicks = std::uint64_t{1} << 40U;  // more are damage, and would not fit as microseconds

std::uint64_t microsecondsATick() {
  static const long ticks = sysconf(_SC_CLK_TCK);
  return ticks > 0 ? 1'000'000 / static_cast<std::uint64_t>(ticks) : 10'000;
}

// What `now` is above what was seen of it last, onto the sum. The first sight counts nothing, nor does what began anew.
void add(std::optional<std::uint64_t>& sum, std::optional<std::uint64_t>& last, std::optional<std::uint64_t> now) {
  if (last && now && *now >= *last) {
    sum = sum.value_or(0) + (*now - *last);
  }
  last = now;
}

std::optional<std::uint64_t> plus(std::optional<std::uint64_t> own, std::optional<std::uint64_t> workers) {
  return own ? std::optional(*own + workers.value_or(0)) : std::nullopt;
}

}  // namespace

OsTotals OsAccount::totals(int thread) noexcept {
  try {
    return read(thread);
  } catch (const std::exception&) {  // no memory
    return {};
  }
}

OsTotals OsAccount::read(int thread) {
  // Totals of other groups than before are no continuation.
  const bool looks = rounds_++ % kLookEvery == 0;
  const bool moved = looks && findGroups();
  if (looks) {
    nvml_.findDevice();
  }
  OsTotals totals{threadTimes(thread, root_), {}};
  const std::string folder = "/proc/self/task/" + std::to_string(thread);
  readThread(folder, totals.counters);
  readWorkers(folder);
  readProcess(totals.counters);
  readNetwork(totals.counters);
  if (!moved) {
    readPressure(totals.counters);
    readQuota(totals.counters);
  }
  readDevice(totals.counters);
  return totals;
}

// The whole text, until the next call. Empty: it cannot be read, or is larger than anything that is read here.
std::string_view OsAccount::file(const std::string& path) {
  const int descriptor = open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return {};
  }
  std::size_t length = 0;
  ssize_t got = 1;
  while (got > 0 && length < buffer_.size()) {
    got = ::read(descriptor, buffer_.data() + length, buffer_.size() - length);
    length += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  close(descriptor);
  return got == 0 ? std::string_view(buffer_.data(), length) : std::string_view();
}

// ---- The process ----

void OsAccount::readThread(const std::string& folder, OsCounters& out) {
  const std::string_view status = file(folder + "/status");
  out[OsCounter::kVoluntarySwitches] = proc::valueOf(status, "voluntary_ctxt_switches:");
  out[OsCounter::kInvoluntarySwitches] = proc::valueOf(status, "nonvoluntary_ctxt_switches:");
  const std::string_view stat = file(folder + "/stat");
  out[OsCounter::kMajorFaults] = proc::statField(stat, proc::kStatMajorFaults);
  out[OsCounter::kBlockIo] = blockIoUs(stat);
}

std::optional<std::uint64_t> OsAccount::blockIoUs(std::string_view stat) const {
  const auto ticks = proc::statField(stat, proc::kStatBlockIoTicks);
  const bool known = blockIo_ == BlockIo::kCounted || (blockIo_ == BlockIo::kIfNotZero && ticks != 0U);
  return ticks && known && *ticks < kMostTicks ? std::optional(*ticks * microsecondsATick()) : std::nullopt;
}

void OsAccount::readProcess(OsCounters& out) {
  const std::string_view io = file("/proc/self/io");
  out[OsCounter::kReadBytes] = plus(proc::valueOf(io, "read_bytes:"), workersSum_.readBytes);
  out[OsCounter::kReadCallBytes] = plus(proc::valueOf(io, "rchar:"), workersSum_.readCallBytes);
  out[OsCounter::kWorkersBlockIo] = workersSum_.blockIoUs;
}

void OsAccount::readWorkers(const std::string& folder) {
  std::string_view children = file(folder + "/children");
  std::map<int, Worker> now;
  for (auto word = proc::nextWord(children); !word.empty() && now.size() < kMaxWorkers;
       word = proc::nextWord(children)) {
    const auto id = proc::number(word);
    if (id && *id > 0 && *id <= INT32_MAX) {
      const auto known = workers_.find(static_cast<int>(*id));
      now.emplace(static_cast<int>(*id), known == workers_.end() ? Worker{} : known->second);
    }
  }
  workers_ = std::move(now);
  for (std::size_t i = 0; i < std::min(kWorkersARound, workers_.size()); ++i) {
    auto next = workers_.upper_bound(lastWorker_);
    next = next == workers_.end() ? workers_.begin() : next;
    lastWorker_ = next->first;
    readWorker(next->first, next->second);
  }
}

void OsAccount::readWorker(int id, Worker& worker) {
  const std::string folder = "/proc/" + std::to_string(id);
  const std::string_view io = file(folder + "/io");
  add(workersSum_.readBytes, worker.readBytes, proc::valueOf(io, "read_bytes:"));
  add(workersSum_.readCallBytes, worker.readCallBytes, proc::valueOf(io, "rchar:"));
  add(workersSum_.blockIoUs, worker.blockIoUs, blockIoUs(file(folder + "/stat")));
}

// ---- The host, or the container ----

void OsAccount::readNetwork(OsCounters& out) {
  if (const auto bytes = proc::networkBytes(file("/proc/self/net/dev"))) {
    out[OsCounter::kReceivedBytes] = bytes->received;
    out[OsCounter::kSentBytes] = bytes->sent;
  }
  out[OsCounter::kRetransmits] = proc::protocolValue(file("/proc/self/net/snmp"), "Tcp:", "RetransSegs");
}

void OsAccount::readPressure(OsCounters& out) {
  out[OsCounter::kCpuPressure] = proc::pressureTotal(file(pressure_[0]), "some");
  const std::string_view io = file(pressure_[1]);
  out[OsCounter::kIoPressure] = proc::pressureTotal(io, "some");
  out[OsCounter::kIoFullPressure] = proc::pressureTotal(io, "full");
  const std::string_view memory = file(pressure_[2]);
  out[OsCounter::kMemoryPressure] = proc::pressureTotal(memory, "some");
  out[OsCounter::kMemoryFullPressure] = proc::pressureTotal(memory, "full");
}

// Of all groups together: which of them held the process up cannot be told apart, and does not matter.
void OsAccount::readQuota(OsCounters& out) {
  for (const auto& folder : quotas_) {
    const std::string_view stat = file(folder + "/cpu.stat");
    const auto times = proc::valueOf(stat, "nr_throttled");
    const auto duration = proc::valueOf(stat, quotaInNanoseconds_ ? "throttled_time" : "throttled_usec");
    if (times && duration) {
      auto& sum = out[OsCounter::kQuotaThrottles];
      auto& durationSum = out[OsCounter::kQuotaThrottled];
      sum = sum.value_or(0) + *times;
      durationSum = durationSum.value_or(0) + *duration / (quotaInNanoseconds_ ? 1000 : 1);
    }
  }
}

void OsAccount::readDevice(OsCounters& out) {
  const DeviceState state = nvml_.state();
  out[OsCounter::kSmClock] = state.smClockMhz;
  out[OsCounter::kDeviceTemperature] = state.temperatureC;
  out[OsCounter::kDeviceSlowedByHeat] = state.slowedByHeat;
  out[OsCounter::kDeviceSlowedByPower] = state.slowedByPower;
}

// ---- Control groups ----

// Says whether they are others than they were.
bool OsAccount::findGroups() {
  const std::string text(file("/proc/self/cgroup"));
  if (text == groupsText_) {
    return false;
  }
  const bool first = !groupsText_;
  groupsText_ = text;
  if (first) {
    findBlockIo();
  }
  quotas_.clear();
  // Version 2 lies beside version 1's hierarchies where a host has both.
  const bool alone = !file("/sys/fs/cgroup/cgroup.controllers").empty();
  const std::string second = alone ? "/sys/fs/cgroup" : "/sys/fs/cgroup/unified";
  const auto own = proc::groupPath(text, "");
  findPressure(own ? existing(second, own->path, "cpu.pressure") : "");
  if (own && alone) {
    addQuotas(second, own->path, "cpu.max", "max");
  }
  quotaInNanoseconds_ = quotas_.empty();
  if (const auto cpu = proc::groupPath(text, "cpu"); cpu && quotas_.empty()) {
    addQuotas("/sys/fs/cgroup/" + std::string(cpu->controllers), cpu->path, "cpu.cfs_quota_us", "-1");
    if (quotas_.empty()) {
      addQuotas("/sys/fs/cgroup/cpu", cpu->path, "cpu.cfs_quota_us", "-1");
    }
  }
  return !first;
}

void OsAccount::findBlockIo() {
  std::string_view text = file("/proc/sys/kernel/task_delayacct");
  if (text.empty()) {
    blockIo_ = BlockIo::kIfNotZero;
    return;
  }
  blockIo_ = proc::number(proc::nextWord(text)) == 1U ? BlockIo::kCounted : BlockIo::kNotCounted;
}

void OsAccount::findPressure(const std::string& ownFolder) {
  constexpr std::array<const char*, 3> kResources = {"cpu", "io", "memory"};
  for (std::size_t i = 0; i < kResources.size(); ++i) {
    pressure_[i] = ownFolder.empty() ? std::string("/proc/pressure/") + kResources[i]
                                     : ownFolder + "/" + kResources[i] + ".pressure";
  }
}

// The folder of the group at `path`. In a container without a namespace for groups the path is the host's, and what is
// mounted is the container's own.
std::string OsAccount::existing(const std::string& mount, std::string_view path, const char* name) {
  for (const std::string& folder : {mount + (path == "/" ? "" : std::string(path)), mount}) {
    if (!file(folder + "/" + name).empty()) {
      return folder;
    }
  }
  return "";
}

// The own group, and those above it that have a quota.
void OsAccount::addQuotas(const std::string& mount, std::string_view path, const char* quotaFile,
                          const char* unlimited) {
  std::string folder = existing(mount, path, "cpu.stat");
  if (folder.empty()) {
    return;
  }
  quotas_.push_back(folder);
  for (std::size_t above = 0; above < kMaxGroupsAbove && folder.size() > mount.size(); ++above) {
    folder.resize(std::max(folder.rfind('/'), mount.size()));
    std::string_view quota = file(folder + "/" + quotaFile);
    const std::string_view word = proc::nextWord(quota);
    if (!word.empty() && word != unlimited) {
      quotas_.push_back(folder);
    }
  }
}

}  // namespace straggler
