// The topics of the module, one file each: they convert, release the interpreter lock, and hold no logic.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace straggler {

void bindBackend(pybind11::module_& module);
void bindSession(pybind11::module_& module);
void bindMitigation(pybind11::module_& module);
void bindReplay(pybind11::module_& module);

}  // namespace straggler
