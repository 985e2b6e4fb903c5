// Log: where lines for people go. A reporter decides what is said; a log only carries it, to a descriptor or to Python's
// logging.
//
// Contract: no function throws; a line that cannot be carried is lost, and training goes on.
//
// Thread safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "backend/base/clock.h"

namespace straggler {

enum class Severity : std::uint8_t {
  kInfo,     // what was seen
  kWarning,  // somebody should look
  kError,    // what was asked for is not done
};

class Log {
 public:
  virtual ~Log() = default;

  // `text`: one or several lines that belong together. The newline at the end may be left out.
  virtual void line(Severity severity, const std::string& text) noexcept = 0;
  // Waits until all that was said before is out, for at most `patience`.
  virtual void flush(Duration patience) noexcept = 0;
};

// Writes all of `text`, blocking where the descriptor does; gives up where it fails.
void writeText(int descriptor, const std::string& text) noexcept;

// The same, but gives up at once where it would block.
void writeTextNow(int descriptor, const std::string& text) noexcept;

// Writes each text to a descriptor, whatever its severity.
class DescriptorLog final : public Log {
 public:
  explicit DescriptorLog(int descriptor) : descriptor_(descriptor) {}

  void line(Severity severity, const std::string& text) noexcept override;
  void flush(Duration /*patience*/) noexcept override {}

 private:
  int descriptor_;
};

}  // namespace straggler
