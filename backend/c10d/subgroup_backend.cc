#include "backend/c10d/subgroup_backend.h"

#include <utility>

#include "backend/c10d/mitigation.h"

namespace straggler {

ForwardingBackend::WorkPtr SubgroupBackend::call(const Call& call, c10::function_ref<WorkPtr()> issue) {
  if (const auto mitigation = currentMitigation()) {
    mitigation->exactElsewhere(std::string(call.method) + " in group '" + name_ + "'");
  }
  return issue();
}

ForwardingBackend::BackendPtr SubgroupBackend::wrap(BackendPtr made, const std::vector<int>& /*ranks*/) {
  const std::string name = made->getGroupUid();
  return c10::make_intrusive<SubgroupBackend>(std::move(made), name);
}

}  // namespace straggler
