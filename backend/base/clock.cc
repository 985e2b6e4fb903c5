#include "backend/base/clock.h"

#include <unistd.h>

#include <array>
#include <fstream>

namespace straggler {

std::string clockDomain() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  if (!std::getline(file, boot) || boot.empty()) {
    return {};
  }
  std::array<char, 64> link{};
  const ssize_t length = readlink("/proc/self/ns/time", link.data(), link.size());
  // A kernel without time namespaces has one monotonic clock for everybody.
  return length > 0 ? boot + "/" + std::string(link.data(), static_cast<std::size_t>(length)) : boot;
}

}  // namespace straggler
