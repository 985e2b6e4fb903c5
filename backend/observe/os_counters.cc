#include "backend/observe/os_counters.h"

namespace straggler {
namespace {

enum class Kind : std::uint8_t { kCount, kTime, kState };
struct Description {
  std::string_view name;
  Kind kind = Kind::kCount;
};

constexpr std::array<Description, kOsCounters> kDescriptions = {{{"voluntary_switches"},
                                                                 {"involuntary_switches"},
                                                                 {"major_faults"},
                                                                 {"block_io", Kind::kTime},
                                                                 {"workers_block_io", Kind::kTime},
                                                                 {"read_bytes"},
                                                                 {"read_call_bytes"},
                                                                 {"received_bytes"},
                                                                 {"sent_bytes"},
                                                                 {"retransmits"},
                                                                 {"cpu_pressure", Kind::kTime},
                                                                 {"io_pressure", Kind::kTime},
                                                                 {"io_full_pressure", Kind::kTime},
                                                                 {"memory_pressure", Kind::kTime},
                                                                 {"memory_full_pressure", Kind::kTime},
                                                                 {"quota_throttles"},
                                                                 {"quota_throttled", Kind::kTime},
                                                                 {"sm_clock_mhz", Kind::kState},
                                                                 {"device_temperature_c", Kind::kState},
                                                                 {"device_slowed_by_heat", Kind::kState},
                                                                 {"device_slowed_by_power", Kind::kState}}};

const Description& of(OsCounter counter) { return kDescriptions[static_cast<std::size_t>(counter)]; }

}  // namespace

std::array<OsCounter, kOsCounters> allOsCounters() {
  std::array<OsCounter, kOsCounters> all{};
  for (std::size_t i = 0; i < kOsCounters; ++i) {
    all[i] = static_cast<OsCounter>(i);
  }
  return all;
}

bool isTime(OsCounter counter) { return of(counter).kind == Kind::kTime; }

bool isState(OsCounter counter) { return of(counter).kind == Kind::kState; }

std::string totalField(OsCounter counter) { return std::string(of(counter).name) + (isTime(counter) ? "_us" : ""); }

std::string stepField(OsCounter counter) { return std::string(of(counter).name) + (isTime(counter) ? "_ms" : ""); }

OsCounters OsCounters::since(const OsCounters& before) const {
  OsCounters difference;
  for (const OsCounter counter : allOsCounters()) {
    const auto& then = before[counter];
    const auto& now = (*this)[counter];
    if (isState(counter)) {
      difference[counter] = now;
    } else if (then && now && *now >= *then) {
      difference[counter] = *now - *then;
    }
  }
  return difference;
}

}  // namespace straggler
