// The record of which slots were filled for a rank, as JSON lines: what STRAGGLER_FORCE_PARTICIPATION reads again.
#pragma once

#include <cstdint>
#include <string>

#include "backend/mitigate/mode.h"
#include "backend/mitigate/participation.h"

namespace straggler {

// The first line of a rank's file.
std::string participationStart(int rank, int worldSize, MitigationMode mode, std::uint64_t staleness);

std::string toJson(int rank, const Participation& participation);

}  // namespace straggler
