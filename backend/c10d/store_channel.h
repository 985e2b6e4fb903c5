// StoreChannel: control messages over clones of the group's store: one queue for the coordinator, one for each rank.
//
//   straggler/mitigate/<nonce>/coordinator     to the coordinator
//   straggler/mitigate/<nonce>/rank/<r>        to group rank r
//
// The nonce is the group's own, so that two groups on one store, and a group that is made again, do not meet. It takes a
// store with queues (TCPStore with libuv). A clone has a connection of its own, and inherits the group's timeout: a wait
// that ran into it is taken up again.
#pragma once

#include <atomic>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "backend/base/mutex.h"
#include "backend/c10d/control_channel.h"

namespace straggler {

class StoreChannel final : public ControlChannel {
 public:
  // Throws with a reason if the store has no queues.
  static void check(c10d::Store& store);
  StoreChannel(c10::intrusive_ptr<c10d::Store> store, const std::string& nonce, int rank);

  std::unique_ptr<ControlInbox> inboxOfRank() override;
  std::unique_ptr<ControlInbox> inboxOfCoordinator() override;
  void sendToCoordinator(const std::vector<std::uint8_t>& bytes) noexcept override;
  void sendToRank(int rank, const std::vector<std::uint8_t>& bytes) noexcept override;
  std::string gone() const override;

 private:
  class Inbox;
  struct Link;

  void send(const std::string& key, const std::vector<std::uint8_t>& bytes) noexcept;

  std::shared_ptr<Link> link_;  // what the inboxes share with it
};

}  // namespace straggler
