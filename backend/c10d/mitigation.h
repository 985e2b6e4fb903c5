// Mitigation of this process: its one group whose late ranks do not hold up the others, made as the settings say, and found
// again by whom it concerns.
#pragma once

#include <optional>
#include <string>

#include "backend/c10d/mitigating_backend.h"

namespace straggler {

struct ControlFaults {
  double probability = 0;  // that a message is lost, repeated or delayed: a third of them each
  double delayMs = 0;
  std::uint64_t seed = 0;
};

struct MitigationRequest {
  c10::intrusive_ptr<c10d::Backend> inner;
  c10::intrusive_ptr<c10d::Store> store;
  int globalRank = 0;
  std::chrono::milliseconds timeout{};
  std::vector<Participation> fills{};                           // of this rank, of a run to repeat
  std::optional<std::map<Slot, std::uint32_t>> participants{};  // of all; nothing: no run to repeat
  std::optional<ControlFaults> faults{};                        // for trials
};

// The backend that mitigates. Null where it cannot be had (a store without queues): one line says why, and the group is exact.
// Waits for group rank 0, a minute at most. Throws SettingsError for what is set wrongly.
c10::intrusive_ptr<MitigatingBackend> makeMitigation(const MitigationRequest& request);

// Null: there is none, or not any more, or it is the parent's of a forked child.
c10::intrusive_ptr<MitigatingBackend> currentMitigation();

}  // namespace straggler
