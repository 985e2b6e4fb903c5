#include "backend/detect/cause.h"

#include <optional>

namespace straggler {
namespace {

bool explains(const std::optional<double>& part, double excessMs) {
  return part && excessMs > 0 && *part >= kExplains * excessMs;
}

// Pages that are read back because memory is short are no input.
bool isShortOfMemory(const Evidence& evidence, double excessMs) {
  return evidence.above(OsCounter::kMemoryFullPressure).value_or(0) >= kMatters * excessMs;
}

}  // namespace

std::string causeOf(const Evidence& evidence, double excessMs) {
  if (explains(evidence.inputMs, excessMs)) {
    return "host_input";
  }
  if (explains(evidence.runDelayMs, excessMs)) {
    return "host_launch";
  }
  if (explains(evidence.cpuMs, excessMs)) {
    return "host_compute";
  }
  if (explains(evidence.above(OsCounter::kBlockIo), excessMs) && !isShortOfMemory(evidence, excessMs)) {
    return "host_input";
  }
  // Summed over processors, so it says nothing against a wait of the thread's that is known to be shorter.
  if (!evidence.runDelayMs && explains(evidence.above(OsCounter::kQuotaThrottled), excessMs)) {
    return "host_launch";
  }
  return "not_attributed";
}

}  // namespace straggler
