// StragglerBackend: the wrapper that users name. It forwards everything to the inner backend and records every operation
// on the way, in the process's session, which it joins when it is made and leaves when it is shut down or destroyed.
//
// Contract: results, exceptions and exit codes are the inner's. It adds no collective and no copy.
//
// Coalescing: between startCoalescing() and endCoalescing() single calls issue nothing yet; the whole is one record.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/c10d/forwarding_backend.h"
#include "backend/c10d/observer.h"
#include "backend/session/session.h"

namespace straggler {

class StragglerBackend final : public ForwardingBackend {
 public:
  // `name`: the group's, equal on all its members; empty where it is told later (setGroupUid). `globalRanks`: of the
  // group's members, by group rank. Throws SettingsError, before anything is communicated. What else keeps it from being
  // observed (no memory for the ring, say) is one line, and it only forwards.
  StragglerBackend(BackendPtr inner, StorePtr store, std::string name, std::vector<int> globalRanks);
  ~StragglerBackend() override;

  void setGroupUid(const std::string& uid) override;
  void startCoalescing() override;
  void shutdown() override;

 protected:
  WorkPtr call(const Call& call, c10::function_ref<WorkPtr()> issue) override;
  BackendPtr wrap(BackendPtr made, const std::vector<int>& ranks) override;

 private:
  // What is coalesced: between start and end.
  struct Coalesced {
    bool active = false;
    bool collective = false;  // at least one call in it is not point to point
    Call call;
  };

  void join();
  void leave() noexcept;
  void tellOfMitigation();
  void hearDescription() noexcept;
  Call coalesced(const Call& end);

  StorePtr store_;
  std::string name_;
  std::vector<int> globalRanks_;
  GroupId group_ = 0;
  bool described_ = false;
  Coalesced coalescing_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<Observer> observer_;
};

}  // namespace straggler
