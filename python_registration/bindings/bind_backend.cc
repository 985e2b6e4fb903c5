// The wrapped backends, as torch's Python sees them: subclasses of Backend.
#include <pybind11/stl.h>
#include <torch/csrc/utils/object_ptr.h>

#include "backend/c10d/delayed_backend.h"
#include "backend/c10d/straggler_backend.h"
#include "python_registration/bindings/bind.h"

namespace py = pybind11;

namespace straggler {
namespace {

// What the inner backend has beyond c10d::Backend (NCCL's own methods, say) is found on the wrapper too.
py::object innerAttribute(const py::object& self, const std::string& name) {
  return self.attr("inner").attr(name.c_str());
}

}  // namespace

void bindBackend(py::module_& module) {
  const auto distributed = py::module_::import("torch._C._distributed_c10d");
  py::class_<ForwardingBackend, c10d::Backend, c10::intrusive_ptr<ForwardingBackend>>(
      module, "ForwardingBackend", "A backend that passes everything on to an inner backend.")
      .def_property_readonly("inner", &ForwardingBackend::inner, "The backend that is wrapped.")
      .def("__getattr__", &innerAttribute);

  py::class_<StragglerBackend, ForwardingBackend, c10::intrusive_ptr<StragglerBackend>>(
      module, "StragglerBackend", "A backend that records every operation of an inner backend.")
      .def(py::init([](const c10::intrusive_ptr<c10d::Backend>& inner, const c10::intrusive_ptr<c10d::Store>& store,
                       const std::string& groupId, const std::vector<int>& globalRanks) {
             const py::gil_scoped_release released;
             return c10::make_intrusive<StragglerBackend>(inner, store, groupId, globalRanks);
           }),
           py::arg("inner"), py::arg("store"), py::kw_only(), py::arg("group_id"), py::arg("global_ranks"));

  py::class_<DelayedBackend, ForwardingBackend, c10::intrusive_ptr<DelayedBackend>>(
      module, "DelayedBackend", "A backend that holds its rank up before collectives, for trials.")
      .def(py::init([](const c10::intrusive_ptr<c10d::Backend>& inner, int rank, const std::string& rules) {
             return c10::make_intrusive<DelayedBackend>(inner, rank, rules);
           }),
           py::arg("inner"), py::kw_only(), py::arg("rank"), py::arg("rules"));
}

}  // namespace straggler
