// Files of real kernels (6.18, and a 4.18 where they differ), and what becomes of them when they are torn or damaged.
#include "backend/session/proc_text.h"

#include <array>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fakes/damage.h"

namespace straggler::proc {
namespace {

constexpr const char* kStatus =
    "Name:\tpt main_thread\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t25142\nVmPeak:\t    3060 kB\n"
    "Cpus_allowed_list:\t0-1\nvoluntary_ctxt_switches:\t1234\nnonvoluntary_ctxt_switches:\t56\n";
// The name holds what could be taken for the end of it. 12 is 17, 42 is 333.
constexpr const char* kStat =
    "25142 (a) R 7 (b) S 25137 25137 21765 0 -1 4194304 101 5 17 6 20 30 0 0 20 0 1 0 4956127 3133440 416 "
    "18446744073709551615 94604719480832 94604719500713 140721228537584 0 0 0 0 0 0 0 0 0 17 1 0 0 333 0 0 "
    "94604719516720 94604719518336 94605749256192 140721228540342 140721228540362 140721228540362 140721228541931 0\n";
constexpr const char* kIo =
    "rchar: 6976\nwchar: 0\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 0\ncancelled_write_bytes: 0\n";
constexpr const char* kPressure =
    "some avg10=80.25 avg60=90.34 avg300=72.23 total=21849828952\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
constexpr const char* kNetDev =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
    "compressed\n"
    "    lo: 1125816914405 336579027    0    0    0     0          0         0 1125816914405 336579027    0    0    0  "
    "   "
    "0       0          0\n"
    "  eth0: 45537023803  925422    0    0    0     0          0         0 46932307  660758    0    0    0     0       "
    "0  "
    "        0\n"
    " eth1:5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n";
constexpr const char* kSnmp =
    "Ip: Forwarding DefaultTTL InReceives\nIp: 2 64 337498150\n"
    "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs "
    "OutSegs "
    "RetransSegs InErrs OutRsts InCsumErrors\n"
    "Tcp: 1 200 120000 -1 114693 113652 865 796 185 337396188 337040811 87383 0 1630 0\n";
constexpr const char* kCgroup =
    "9:name=systemd:/\n4:memory:/process_api/20dfc8c4369878a5\n3:cpu,cpuacct:/docker/1f:2\n0::/user.slice/a.scope\n";

TEST(ProcText, numberIsWholeAndFits) {
  EXPECT_EQ(number("18446744073709551615"), UINT64_MAX);
  for (const char* none : {"", "-1", "+1", "8.1", "1x", " 1", "18446744073709551616"}) {
    EXPECT_FALSE(number(none)) << none;
  }
}

TEST(ProcText, valueIsThatOfTheLineOfItsName) {
  EXPECT_EQ(valueOf(kStatus, "nonvoluntary_ctxt_switches:"), 56U);
  EXPECT_EQ(valueOf(kStatus, "voluntary_ctxt_switches:"), 1234U);
  EXPECT_FALSE(valueOf("nonvoluntary_ctxt_switches:\t5\n", "voluntary_ctxt_switches:")) << "the end of another's name";
  EXPECT_EQ(valueOf(kIo, "read_bytes:"), 4096U);
  EXPECT_EQ(valueOf("nr_periods 9\nnr_throttled 4\n", "nr_throttled"), 4U);
  EXPECT_FALSE(valueOf(kIo, "read"));
  EXPECT_FALSE(valueOf("read_bytes:\n", "read_bytes:"));
}

TEST(ProcText, fieldsOfStatAreCountedFromTheEndOfTheName) {
  EXPECT_EQ(statField(kStat, kStatMajorFaults), 17U);
  EXPECT_EQ(statField(kStat, kStatBlockIoTicks), 333U);
  EXPECT_FALSE(statField(kStat, kStatState)) << "a letter";
  EXPECT_FALSE(statField(kStat, 53)) << "beyond the last";
  EXPECT_FALSE(statField(kStat, 2));
}

TEST(ProcText, pressureIsTheTotalOfItsLine) {
  EXPECT_EQ(pressureTotal(kPressure, "some"), 21849828952U);
  EXPECT_EQ(pressureTotal(kPressure, "full"), 7U);
  EXPECT_FALSE(pressureTotal("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n", "full")) << "of cpu, before 5.13";
}

TEST(ProcText, networkIsTheSumOfTheInterfacesWithoutTheLoopback) {
  const auto bytes = networkBytes(kNetDev);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->received, 45537023803U + 5);
  EXPECT_EQ(bytes->sent, 46932307U + 6);
}

TEST(ProcText, namespaceWithTheLoopbackAloneSentNothing) {
  const auto bytes = networkBytes("a|b\n c|d\n lo: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n");
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->received + bytes->sent, 0U);
  EXPECT_FALSE(networkBytes("a|b\n c|d\n")) << "no interface: nothing is known";
}

TEST(ProcText, protocolsValueStandsUnderItsHeading) {
  EXPECT_EQ(protocolValue(kSnmp, "Tcp:", "RetransSegs"), 87383U);
  EXPECT_EQ(protocolValue(kSnmp, "Ip:", "DefaultTTL"), 64U);
  EXPECT_FALSE(protocolValue(kSnmp, "Tcp:", "MaxConn")) << "below zero";
  EXPECT_FALSE(protocolValue(kSnmp, "Udp:", "InDatagrams"));
  EXPECT_FALSE(protocolValue("Tcp: RetransSegs\nIp: 3\n", "Tcp:", "RetransSegs"));
}

TEST(ProcText, groupIsFoundByItsController) {
  EXPECT_EQ(groupPath(kCgroup, "")->path, "/user.slice/a.scope");
  EXPECT_EQ(groupPath(kCgroup, "cpu")->path, "/docker/1f:2");
  EXPECT_EQ(groupPath(kCgroup, "cpu")->controllers, "cpu,cpuacct");
  EXPECT_FALSE(groupPath(kCgroup, "cpuset"));
  EXPECT_FALSE(groupPath("0::\n", ""));
}

// ---- Torn and damaged ----

struct Reading {
  std::string name;
  std::string text;
  std::optional<std::uint64_t> (*read)(std::string_view);
};

std::vector<Reading> readings() {
  return {
      {"status", kStatus, [](std::string_view t) { return valueOf(t, "nonvoluntary_ctxt_switches:"); }},
      {"faults", kStat, [](std::string_view t) { return statField(t, kStatMajorFaults); }},
      {"ticks", kStat, [](std::string_view t) { return statField(t, kStatBlockIoTicks); }},
      {"io", kIo, [](std::string_view t) { return valueOf(t, "read_bytes:"); }},
      {"pressure", kPressure, [](std::string_view t) { return pressureTotal(t, "full"); }},
      {"retransmits", kSnmp, [](std::string_view t) { return protocolValue(t, "Tcp:", "RetransSegs"); }},
      {"group", kCgroup,
       [](std::string_view t) {
         const auto group = groupPath(t, "cpu");
         return group ? std::optional<std::uint64_t>(group->path.size()) : std::nullopt;
       }},
  };
}

TEST(ProcText, tornFileGivesTheRightNumberOrNone) {
  for (const auto& reading : readings()) {
    const auto whole = reading.read(reading.text);
    ASSERT_TRUE(whole) << reading.name;
    for (std::size_t length = 0; length < reading.text.size(); ++length) {
      const auto torn = reading.read(std::string_view(reading.text).substr(0, length));
      EXPECT_TRUE(!torn || torn == whole) << reading.name << " of " << length << " bytes gives " << *torn;
    }
  }
}

TEST(ProcText, damagedFilesNeverCrash) {
  std::mt19937 random(20261201);
  for (int i = 0; i < 20'000; ++i) {
    for (const auto& reading : readings()) {
      const auto bytes = damaged(std::vector<std::uint8_t>(reading.text.begin(), reading.text.end()), random);
      const std::string text(bytes.begin(), bytes.end());
      (void)reading.read(text);
      (void)networkBytes(text);
    }
    const std::string net(kNetDev);
    const auto bytes = damaged(std::vector<std::uint8_t>(net.begin(), net.end()), random);
    (void)networkBytes(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
}

}  // namespace
}  // namespace straggler::proc
