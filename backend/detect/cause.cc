#include "backend/detect/cause.h"

#include <optional>
#include <vector>

#include "backend/base/format.h"

namespace straggler {
namespace {

bool explains(const std::optional<double>& part, double excessMs) {
  return part && excessMs > 0 && *part >= kExplains * excessMs;
}

}  // namespace

std::string causeOf(const Evidence& evidence, double excessMs) {
  if (explains(evidence.inputMs, excessMs)) {
    return "host_input";
  }
  if (explains(evidence.runDelayMs, excessMs)) {
    return "host_launch";
  }
  return explains(evidence.cpuMs, excessMs) ? "host_compute" : "not_attributed";
}

std::string describe(const Evidence& evidence) {
  std::vector<std::string> parts;
  const auto add = [&parts](const std::optional<double>& part, const std::string& where) {
    if (part) {
      parts.push_back(fixed(*part, 1) + " ms " + where);
    }
  };
  add(evidence.inputMs, "in the data loader");
  add(evidence.cpuMs, "running on its processor");
  add(evidence.runDelayMs, "waiting for a processor");
  return join(parts, ", ");
}

}  // namespace straggler
