#include "backend/detect/verdict.h"

#include <array>

namespace straggler {
namespace {

constexpr std::array<std::string_view, 7> kNames = {"none",     "straggler", "imbalance", "network",
                                                    "job_wide", "cleared",   "abstain"};

}  // namespace

std::string_view toString(VerdictKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

}  // namespace straggler
