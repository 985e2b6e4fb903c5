// ControlChannel: carries the control messages of a group's mitigation. An interface, so that another transport can take the
// store's place.
//
// Contract: what is sent may be lost, late, repeated or out of order. Sending does not wait for the receiver. A channel that
// is gone says so once, by gone(), and stays so.
//
// Thread safety: send() from any thread, receive() from the one thread that the end belongs to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace straggler {

// Where messages end: a rank's own inbox, or the coordinator's.
class ControlInbox {
 public:
  virtual ~ControlInbox() = default;
  // Waits for the next message. Nothing: close() was called, or the channel is gone.
  virtual std::optional<std::vector<std::uint8_t>> receive() = 0;
  // Ends a receive() of this inbox, from any thread.
  virtual void close() noexcept = 0;
};

class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  virtual std::unique_ptr<ControlInbox> inboxOfRank() = 0;
  virtual std::unique_ptr<ControlInbox> inboxOfCoordinator() = 0;

  virtual void sendToCoordinator(const std::vector<std::uint8_t>& bytes) noexcept = 0;
  virtual void sendToRank(int rank, const std::vector<std::uint8_t>& bytes) noexcept = 0;

  // Why nothing is carried any more; empty: it is.
  virtual std::string gone() const = 0;
};

}  // namespace straggler
