#include "backend/session/thread_times.h"

#include <array>
#include <cstdio>
#include <memory>

namespace straggler {

std::optional<ThreadTimes> threadTimes(int thread, const std::string& root) noexcept {
  std::array<char, 256> path{};
  std::snprintf(path.data(), path.size(), "%s/proc/self/task/%d/schedstat", root.c_str(), thread);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.data(), "re"), &std::fclose);
  long long cpu = 0;
  long long runDelay = 0;
  if (!file || std::fscanf(file.get(), "%lld %lld", &cpu, &runDelay) != 2 || (cpu <= 0 && runDelay <= 0)) {
    return std::nullopt;
  }
  return ThreadTimes{Duration(cpu), Duration(runDelay)};
}

}  // namespace straggler
