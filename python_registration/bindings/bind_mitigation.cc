// Mitigation, as Python sees it: the backends that carry it, and what became of gradients.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/object_ptr.h>

#include "backend/c10d/mitigation.h"
#include "backend/c10d/subgroup_backend.h"
#include "python_registration/bindings/bind.h"

namespace py = pybind11;

namespace straggler {
namespace {

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

Participation participation(const py::dict& line) {
  Participation fill;
  fill.slot = line["slot"].cast<Slot>();
  fill.reached = line["reached"].cast<Slot>();
  SlotOperation& operation = fill.operation;
  operation.kind = line["kind"].cast<std::string>() == "all_reduce" ? SlotOperation::Kind::kAllReduce
                                                                    : SlotOperation::Kind::kBroadcast;
  operation.bucket = line["bucket"].cast<std::optional<BucketId>>();
  operation.root = line["root"].cast<std::int32_t>();
  operation.reduction = static_cast<std::uint8_t>(line["reduction"].cast<int>());
  operation.dtype = static_cast<std::int8_t>(line["dtype"].cast<int>());
  operation.elements = line["elements"].cast<std::uint64_t>();
  operation.bytes = line["bytes"].cast<std::uint64_t>();
  operation.scale = line["scale"].cast<double>();
  return fill;
}

py::object make(const BackendPtr& inner, const StorePtr& store, int globalRank, std::chrono::milliseconds timeout,
                const std::optional<std::vector<py::dict>>& fills,
                const std::optional<std::map<Slot, std::uint32_t>>& participants,
                const std::optional<std::tuple<double, double, std::uint64_t>>& faults) {
  MitigationRequest request{inner, store, globalRank, timeout};
  if (fills) {
    for (const auto& fill : *fills) {
      request.fills.push_back(participation(fill));
    }
    request.participants = participants.value_or(std::map<Slot, std::uint32_t>());
  }
  if (faults) {
    request.faults = ControlFaults{std::get<0>(*faults), std::get<1>(*faults), std::get<2>(*faults)};
  }
  c10::intrusive_ptr<MitigatingBackend> made;
  {
    const py::gil_scoped_release released;
    made = makeMitigation(request);
  }
  return made ? py::cast(made) : py::none();
}

py::dict statusOf(const MitigatingBackend& backend) {
  MitigatingBackend::Status status;
  {
    const py::gil_scoped_release released;
    status = backend.status();
  }
  py::list buckets;
  for (const auto& [bucket, ledger] : status.ledger) {
    py::dict row;
    row["bucket"] = bucket;
    row["elements"] = status.elements[bucket];
    row["produced"] = ledger.produced;
    row["on_time"] = ledger.onTime;
    row["late"] = ledger.late;
    row["dropped"] = ledger.dropped;
    row["pending"] = ledger.pending;
    row["staleness_sum"] = ledger.staleness;
    row["staleness_max"] = ledger.maxStaleness;
    buckets.append(row);
  }
  py::dict result;
  result["mode"] = backend.mode() == MitigationMode::kCarry ? "carry" : "drop";
  result["rank"] = backend.globalRank();
  result["armed"] = status.state == MitigatingBackend::State::kArmed;
  result["text"] = status.text;
  result["buckets"] = buckets;
  result["filled_by_proxy"] = status.filledByProxy;
  result["waited_for"] = status.waitedFor;
  result["messages"] = status.messages;
  result["saved_ms"] = toMilliseconds(status.saved);
  result["grace_ms"] = status.grace ? py::cast(toMilliseconds(*status.grace)) : py::none();
  return result;
}

}  // namespace

void bindMitigation(py::module_& module) {
  using Released = py::call_guard<py::gil_scoped_release>;
  py::class_<MitigatingBackend, ForwardingBackend, c10::intrusive_ptr<MitigatingBackend>>(
      module, "MitigatingBackend", "A backend under which a late rank does not hold up its group.")
      .def("expect_gradients", &MitigatingBackend::expectGradients, Released(), py::arg("elements"))
      .def("set_gradient_scale", &MitigatingBackend::setGradientScale, Released(), py::arg("scale"))
      .def("stand_down", &MitigatingBackend::standDown, Released(), py::arg("reason"))
      .def("flush", &MitigatingBackend::flush, Released())
      .def("restore", &MitigatingBackend::restore, Released(), py::arg("bucket"), py::arg("owed"))
      .def("residuals", &MitigatingBackend::residuals, Released())
      .def("status", &statusOf);
  py::class_<SubgroupBackend, ForwardingBackend, c10::intrusive_ptr<SubgroupBackend>>(
      module, "SubgroupBackend", "A backend that tells the mitigated group of the operations of another group.")
      .def(py::init([](const BackendPtr& inner, const std::string& name) {
             return c10::make_intrusive<SubgroupBackend>(inner, name);
           }),
           py::arg("inner"), py::kw_only(), py::arg("name"));
  module.def("make_mitigation", &make, py::arg("inner"), py::arg("store"), py::kw_only(), py::arg("global_rank"),
             py::arg("timeout"), py::arg("fills"), py::arg("participants"), py::arg("faults"));
  module.def("current_mitigation", &currentMitigation, Released());
}

}  // namespace straggler
