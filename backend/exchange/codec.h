// Codec of frames: bytes on the store. Versioned, compact (varints, times as differences), bounded.
//
// What arrives is not trusted: decode() checks every length against the limits below and against what is left, and
// returns nothing for a frame that is torn, too large, of another version, or has bytes left over. It never throws.
//
// What is written is cut to the limits where it is text of the user's, so that a long description costs no frame.
//
//   frame    := version rank count message*
//   message  := type fields        strings and lists are preceded by their length
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/exchange/messages.h"

namespace straggler {

inline constexpr std::uint8_t kCodecVersion = 4;
inline constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxMessages = 1024;
inline constexpr std::size_t kMaxStringBytes = 1024;
inline constexpr std::size_t kMaxModeBytes = 16;     // of a mitigation's
inline constexpr std::size_t kMaxClauseBytes = 200;  // the same
inline constexpr std::size_t kMaxGroupRanks = std::size_t{1} << 16;
inline constexpr std::size_t kMaxWindowSteps = 1024;
inline constexpr std::size_t kMaxSamples = 4096;

std::vector<std::uint8_t> encode(const Frame& frame);
std::optional<Frame> decode(std::span<const std::uint8_t> bytes);

}  // namespace straggler
