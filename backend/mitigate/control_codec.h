// Codec of the control messages between the ranks of a group and its coordinator: bytes on the store. What arrives is not
// trusted: anything that is torn, too large, of another version, or has bytes left over is nothing. It never throws.
//
//   message := version type fields;   range := last slot, number of operations, operation*
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/mitigate/messages.h"

namespace straggler {

inline constexpr std::uint8_t kControlVersion = 1;
inline constexpr std::size_t kMaxControlBytes = 4096;
inline constexpr std::size_t kMaxRange = 64;

std::vector<std::uint8_t> encodeControl(const ControlMessage& message);
std::optional<ControlMessage> decodeControl(std::span<const std::uint8_t> bytes);

}  // namespace straggler
