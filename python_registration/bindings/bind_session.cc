// The process's session: its settings, its end, its report.
#include <pybind11/stl.h>

#include "backend/base/settings.h"
#include "backend/session/session.h"
#include "python_registration/bindings/bind.h"
#include "python_registration/bindings/python_log.h"

namespace py = pybind11;

namespace straggler {
namespace {

constexpr Duration kLogPatience = std::chrono::milliseconds(500);

py::list settings() {
  py::list rows;
  for (const auto& row : settingRows(readEnvironment())) {
    py::dict entry;
    entry["name"] = row.name;
    entry["value"] = row.value;
    entry["default"] = row.defaultValue;
    entry["type"] = row.type;
    entry["unit"] = row.unit;
    entry["allowed"] = row.allowed;
    entry["source"] = row.fromEnvironment ? "environment" : "default";
    entry["text"] = row.text;
    rows.append(entry);
  }
  return rows;
}

void finish() {
  endSession();
  pythonLog()->stop(kLogPatience);
}

}  // namespace

void bindSession(py::module_& module) {
  py::register_exception<SettingsError>(module, "SettingsError", PyExc_ValueError);
  module.def("settings", &settings,
             "Every setting: name, value in force, default, type, unit, allowed values, source, text.");
  module.def(
      "check_settings", [] { parseSettings(readEnvironment()); },
      "Raises SettingsError, a ValueError, if a STRAGGLER_* variable is unknown or malformed.");
  module.def(
      "finish", &finish, py::call_guard<py::gil_scoped_release>(),
      "Ends the running session: the last gathering, and the report on the root; then the thread that logs. Bounded; "
      "harmless without either.");
  module.def(
      "report_json", &lastReport, py::call_guard<py::gil_scoped_release>(),
      "The report record of the running, or else of the last session, in brief where this rank does not collect; "
      "None where nothing is known.");
}

}  // namespace straggler
