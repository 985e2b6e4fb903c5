#include "backend/observe/os_counters.h"

namespace straggler {
namespace {

struct Description {
  std::string_view name;
  bool isTime = false;
};

constexpr std::array<Description, kOsCounters> kDescriptions = {{{"voluntary_switches"},
                                                                 {"involuntary_switches"},
                                                                 {"major_faults"},
                                                                 {"block_io", true},
                                                                 {"workers_block_io", true},
                                                                 {"read_bytes"},
                                                                 {"read_call_bytes"},
                                                                 {"received_bytes"},
                                                                 {"sent_bytes"},
                                                                 {"retransmits"},
                                                                 {"cpu_pressure", true},
                                                                 {"io_pressure", true},
                                                                 {"io_full_pressure", true},
                                                                 {"memory_pressure", true},
                                                                 {"memory_full_pressure", true},
                                                                 {"quota_throttles"},
                                                                 {"quota_throttled", true}}};

const Description& of(OsCounter counter) { return kDescriptions[static_cast<std::size_t>(counter)]; }

}  // namespace

std::array<OsCounter, kOsCounters> allOsCounters() {
  std::array<OsCounter, kOsCounters> all{};
  for (std::size_t i = 0; i < kOsCounters; ++i) {
    all[i] = static_cast<OsCounter>(i);
  }
  return all;
}

bool isTime(OsCounter counter) { return of(counter).isTime; }

std::string totalField(OsCounter counter) { return std::string(of(counter).name) + (of(counter).isTime ? "_us" : ""); }

std::string stepField(OsCounter counter) { return std::string(of(counter).name) + (of(counter).isTime ? "_ms" : ""); }

OsCounters OsCounters::since(const OsCounters& before) const {
  OsCounters difference;
  for (const OsCounter counter : allOsCounters()) {
    const auto& then = before[counter];
    const auto& now = (*this)[counter];
    if (then && now && *now >= *then) {
      difference[counter] = *now - *then;
    }
  }
  return difference;
}

}  // namespace straggler
