// The text of the kernel's files under /proc and /sys/fs/cgroup: one number, or a few, out of each kind.
//
// Pure, and never throws. Whatever is torn, empty, damaged or of another kernel gives nothing rather than a wrong number:
// a number counts only if it is whole, and fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace straggler::proc {

// "8.1" is no number, nor is "-1", nor one beyond 64 bits.
std::optional<std::uint64_t> number(std::string_view word) noexcept;

// The next word of `text`, which loses it; empty at its end.
std::string_view nextWord(std::string_view& text) noexcept;
std::string_view nextLine(std::string_view& text) noexcept;

// The number after `name`, which is the first word of a line: of status, io, cpu.stat.
//   ("majflt 7\nread_bytes: 12\n", "read_bytes:")  ->  12
std::optional<std::uint64_t> valueOf(std::string_view text, std::string_view name) noexcept;

// A field of /proc/<pid>/stat, numbered as in proc(5). Those before the name, which may hold anything, cannot be had.
constexpr int kStatState = 3;
constexpr int kStatMajorFaults = 12;
constexpr int kStatBlockIoTicks = 42;
std::optional<std::uint64_t> statField(std::string_view text, int field) noexcept;

// Microseconds, of "some" or "full", of a file of pressure.
std::optional<std::uint64_t> pressureTotal(std::string_view text, std::string_view line) noexcept;

// Of /proc/net/dev, all interfaces but the loopback.
struct NetworkBytes {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
};
std::optional<NetworkBytes> networkBytes(std::string_view text) noexcept;

// Of /proc/net/snmp, the value under the heading `name` of a protocol, as ("Tcp:", "RetransSegs").
std::optional<std::uint64_t> protocolValue(std::string_view text, std::string_view protocol,
                                           std::string_view name) noexcept;

// Of /proc/self/cgroup, the path in the hierarchy that has `controller`; "" is that of version 2. Nothing if there is none.
struct GroupPath {
  std::string_view controllers;  // all of the hierarchy
  std::string_view path;
};
std::optional<GroupPath> groupPath(std::string_view text, std::string_view controller) noexcept;

}  // namespace straggler::proc
