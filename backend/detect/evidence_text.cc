#include "backend/detect/evidence_text.h"

#include <optional>
#include <vector>

#include "backend/base/format.h"
#include "backend/detect/cause.h"

namespace straggler {
namespace {

class OsClauses {
 public:
  OsClauses(const Evidence& evidence, double excessMs) : evidence_(evidence), excessMs_(excessMs) {}

  bool matters(OsCounter time) const {
    return excessMs_ > 0 && evidence_.above(time).value_or(0) >= kMatters * excessMs_;
  }
  // At least so many a step more than the peers have, and twice theirs.
  bool isMuchMore(OsCounter counter, double atLeast) const {
    const auto more = evidence_.above(counter);
    return more && *more >= atLeast && *more >= *evidence_.osPeers[counter];
  }
  // "before 6.1 after, peers 0.1", of numbers divided by `unit`.
  std::string beside(const std::string& before, OsCounter counter, const std::string& after, double unit = 1) const {
    return before + fixed(*evidence_.os[counter] / unit, 1) + after + ", peers " +
           fixed(*evidence_.osPeers[counter] / unit, 1);
  }
  // By a tenth.
  bool isSlowerClock() const {
    return known(OsCounter::kSmClock) &&
           *evidence_.os[OsCounter::kSmClock] <= 0.9 * *evidence_.osPeers[OsCounter::kSmClock];
  }
  // Of a state that is 0 or 1: in a fifth of the readings more.
  bool isMoreOften(OsCounter state) const { return evidence_.above(state).value_or(0) >= kMatters; }
  bool known(OsCounter counter) const { return evidence_.os[counter] && evidence_.osPeers[counter]; }

 private:
  const Evidence& evidence_;
  double excessMs_;
};

std::string diskClause(const OsClauses& os) {
  constexpr double kMegabyte = 1e6;
  constexpr double kMuchRead = kMegabyte / 20;
  std::vector<std::string> parts;
  if (os.matters(OsCounter::kBlockIo)) {
    parts.push_back(os.beside("blocked in I/O for ", OsCounter::kBlockIo, " ms a step"));
  }
  if (os.matters(OsCounter::kWorkersBlockIo)) {
    parts.push_back(os.beside("its workers blocked in I/O for ", OsCounter::kWorkersBlockIo, " ms a step"));
  }
  if (os.matters(OsCounter::kIoFullPressure)) {
    parts.push_back(os.beside("all of its host's tasks stalled on I/O for ", OsCounter::kIoFullPressure, " ms a step"));
  }
  const bool asks = os.isMuchMore(OsCounter::kReadCallBytes, kMuchRead);
  if (os.known(OsCounter::kReadBytes) && (asks || !parts.empty() || os.isMuchMore(OsCounter::kReadBytes, kMuchRead))) {
    parts.push_back(os.beside("", OsCounter::kReadBytes, " MB read a step", kMegabyte));
  }
  if (asks) {
    parts.push_back(os.beside("", OsCounter::kReadCallBytes, " MB a step asked of read()", kMegabyte));
  }
  return parts.empty() ? "" : "its disk: " + join(parts, "; ");
}

std::string processorClause(const OsClauses& os, bool waitsForIt) {
  std::vector<std::string> parts;
  if (os.known(OsCounter::kQuotaThrottles) &&
      (os.matters(OsCounter::kQuotaThrottled) || os.isMuchMore(OsCounter::kQuotaThrottles, 0.1))) {
    parts.push_back(os.beside("throttled by its CPU quota ", OsCounter::kQuotaThrottles, " times a step"));
  }
  if (waitsForIt && os.isMuchMore(OsCounter::kInvoluntarySwitches, 0.5)) {
    parts.push_back(os.beside("taken from its processor ", OsCounter::kInvoluntarySwitches, " times a step"));
  }
  return join(parts, "; ");
}

std::string memoryClause(const OsClauses& os) {
  std::vector<std::string> parts;
  if (os.isMuchMore(OsCounter::kMajorFaults, 0.5)) {
    parts.push_back(os.beside("", OsCounter::kMajorFaults, " pages read from disk a step"));
  }
  if (os.matters(OsCounter::kMemoryPressure)) {
    parts.push_back(os.beside("tasks stalled for want of memory for ", OsCounter::kMemoryPressure, " ms a step"));
  }
  return parts.empty() ? "" : "its memory: " + join(parts, "; ");
}

std::string networkClause(const OsClauses& os) {
  return os.isMuchMore(OsCounter::kRetransmits, 0.5)
             ? os.beside("its network: ", OsCounter::kRetransmits, " TCP segments sent again a step")
             : "";
}

std::string deviceClause(const OsClauses& os) {
  std::vector<std::string> parts;
  if (os.isSlowerClock()) {
    parts.push_back(os.beside("SM clock at ", OsCounter::kSmClock, " MHz"));
  }
  if (os.isMoreOften(OsCounter::kDeviceSlowedByHeat)) {
    parts.push_back(os.beside("slowed down by heat in ", OsCounter::kDeviceSlowedByHeat, " % of the readings", 0.01));
    if (os.known(OsCounter::kDeviceTemperature)) {
      parts.push_back(os.beside("at ", OsCounter::kDeviceTemperature, " degrees"));
    }
  }
  if (os.isMoreOften(OsCounter::kDeviceSlowedByPower)) {
    parts.push_back(os.beside("at its power cap in ", OsCounter::kDeviceSlowedByPower, " % of the readings", 0.01));
  }
  return parts.empty() ? "" : "its device: " + join(parts, "; ");
}

}  // namespace

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

std::string describeOs(const Evidence& evidence, double excessMs) {
  const OsClauses os(evidence, excessMs);
  const bool waitsForProcessor = evidence.runDelayMs.value_or(0) >= kMatters * excessMs;
  std::vector<std::string> clauses;
  for (auto& clause : {diskClause(os), processorClause(os, waitsForProcessor), memoryClause(os), networkClause(os),
                       deviceClause(os)}) {
    if (!clause.empty()) {
      clauses.push_back(clause);
    }
  }
  return join(clauses, "; ");
}

}  // namespace straggler
