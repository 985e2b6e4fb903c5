#include "backend/report/log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <exception>
#include <string_view>

namespace straggler {
namespace {

// How much was written; nothing where the descriptor fails.
std::size_t writeSome(int descriptor, std::string_view text) noexcept {
  while (true) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written >= 0 || errno != EINTR) {
      return written > 0 ? static_cast<std::size_t>(written) : 0;
    }
  }
}

// A pipe that polls as writable takes PIPE_BUF bytes without blocking.
bool takesAPiece(int descriptor) noexcept {
  pollfd look{descriptor, POLLOUT, 0};
  return poll(&look, 1, 0) > 0 && (look.revents & POLLOUT) != 0;
}

}  // namespace

void writeText(int descriptor, const std::string& text) noexcept {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t written = writeSome(descriptor, rest);
    if (written == 0) {
      return;
    }
    rest.remove_prefix(written);
  }
}

void writeTextNow(int descriptor, const std::string& text) noexcept {
  std::string_view rest = text;
  while (!rest.empty() && takesAPiece(descriptor)) {
    const std::size_t written = writeSome(descriptor, rest.substr(0, PIPE_BUF));
    if (written == 0) {
      return;
    }
    rest.remove_prefix(written);
  }
}

void DescriptorLog::line(Severity /*severity*/, const std::string& text) noexcept {
  const bool ended = !text.empty() && text.back() == '\n';
  try {
    writeText(descriptor_, ended ? text : text + "\n");
  } catch (const std::exception&) {
    writeText(descriptor_, text);  // no memory for the newline
  }
}

}  // namespace straggler
