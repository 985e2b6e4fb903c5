// SubgroupBackend: tells the process's mitigated group of the collectives of another group, in which nobody can be spared. It
// forwards everything, and is put around groups only where mitigation is asked for.
#pragma once

#include <string>

#include "backend/c10d/forwarding_backend.h"

namespace straggler {

class SubgroupBackend final : public ForwardingBackend {
 public:
  SubgroupBackend(BackendPtr inner, std::string name) : ForwardingBackend(std::move(inner)), name_(std::move(name)) {}

 protected:
  WorkPtr call(const Call& call, c10::function_ref<WorkPtr()> issue) override;
  BackendPtr wrap(BackendPtr made, const std::vector<int>& ranks) override;

 private:
  const std::string name_;
};

}  // namespace straggler
