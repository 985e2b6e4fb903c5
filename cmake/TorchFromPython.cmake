# Asks Python where the installed torch is and makes two targets of it:
#
#   straggler_torch         torch's headers (as system headers), torch, torch_cpu and c10, and torch's C++ ABI: no Python
#   straggler_torch_python  that, with torch_python and Python's headers: for the Python module alone
#
# Also two variables: STRAGGLER_TORCH_CXX11_ABI, 0 or 1, and STRAGGLER_BUILT_FOR_TORCH, "2.15" for any 2.15.x: c10d has no
# stable ABI, so a binary is for one minor.
#
# find_package(Torch) is not used: with a CUDA wheel it asks for a CUDA toolkit, which nothing here needs.

set(_torch_first 2.11)
set(_torch_beyond 2.16)
set(_torch_wanted "'torch>=${_torch_first},<${_torch_beyond}'")

find_package(Python 3.11 QUIET COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)
if(NOT Python_Interpreter_FOUND)
  message(FATAL_ERROR "No Python 3.11 or later was found; name one with -DPython_EXECUTABLE=/path/to/python3.")
endif()
if(NOT Python_Development.Module_FOUND)
  message(FATAL_ERROR "The headers of ${Python_EXECUTABLE} (Python ${Python_VERSION}) are missing: "
                      "apt-get install python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}-dev")
endif()

# Backends that other packages plug into torch are left alone: this needs torch only.
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env TORCH_DEVICE_BACKEND_AUTOLOAD=0 "${Python_EXECUTABLE}" -c
          "import os, torch
print(os.path.dirname(torch.__file__), torch.__version__, int(torch.compiled_with_cxx11_abi()), sep='\\n')"
  OUTPUT_VARIABLE _torch_answer
  ERROR_VARIABLE _torch_error
  RESULT_VARIABLE _torch_result
  OUTPUT_STRIP_TRAILING_WHITESPACE)

if(_torch_result AND _torch_error MATCHES "No module named 'torch'")
  message(FATAL_ERROR "${Python_EXECUTABLE} has no torch to build against, or pip hides it in an isolated build: install "
                      "torch first (pip install ${_torch_wanted}), then run: pip install --no-build-isolation .")
elseif(_torch_result)
  message(FATAL_ERROR "torch cannot be imported by ${Python_EXECUTABLE}; repair it (pip install --force-reinstall "
                      "${_torch_wanted}). Python said:\n${_torch_error}")
endif()

string(REPLACE "\n" ";" _torch_answer "${_torch_answer}")
list(GET _torch_answer 0 _torch_dir)
list(GET _torch_answer 1 _torch_version)
list(GET _torch_answer 2 STRAGGLER_TORCH_CXX11_ABI)

string(REGEX MATCH "^[0-9]+\\.[0-9]+" STRAGGLER_BUILT_FOR_TORCH "${_torch_version}")
if(STRAGGLER_BUILT_FOR_TORCH VERSION_LESS _torch_first
   OR STRAGGLER_BUILT_FOR_TORCH VERSION_GREATER_EQUAL _torch_beyond)
  message(FATAL_ERROR "torch ${_torch_version} is installed, but this version of torch_straggler builds against torch "
                      "${_torch_first} up to, not including, ${_torch_beyond}: pip install ${_torch_wanted}")
endif()

set(_torch_includes "${_torch_dir}/include" "${_torch_dir}/include/torch/csrc/api/include")
if(NOT EXISTS "${_torch_dir}/include/torch/csrc/distributed/c10d/Backend.hpp")
  message(FATAL_ERROR "torch ${_torch_version} in ${_torch_dir} comes without the C++ headers of c10d; install a wheel from "
                      "PyPI: pip install --force-reinstall ${_torch_wanted}")
endif()

foreach(_name IN ITEMS c10 torch_cpu torch torch_python)
  find_library(_torch_library ${_name} PATHS "${_torch_dir}/lib" NO_DEFAULT_PATH NO_CACHE)
  if(NOT _torch_library)
    message(FATAL_ERROR "lib${_name} is missing in ${_torch_dir}/lib; install torch anew: "
                        "pip install --force-reinstall ${_torch_wanted}")
  endif()
  add_library(straggler_torch_lib::${_name} SHARED IMPORTED GLOBAL)
  set_target_properties(straggler_torch_lib::${_name} PROPERTIES IMPORTED_LOCATION "${_torch_library}")
  unset(_torch_library)
endforeach()

add_library(straggler_torch INTERFACE IMPORTED GLOBAL)
target_include_directories(straggler_torch SYSTEM INTERFACE ${_torch_includes})
target_compile_definitions(straggler_torch INTERFACE
  _GLIBCXX_USE_CXX11_ABI=${STRAGGLER_TORCH_CXX11_ABI}
  FMT_HEADER_ONLY=1) # torch's headers use its copy of fmt, whose compiled part is not in the wheel
target_link_libraries(straggler_torch INTERFACE
  straggler_torch_lib::torch straggler_torch_lib::torch_cpu straggler_torch_lib::c10)

add_library(straggler_torch_python INTERFACE IMPORTED GLOBAL)
target_link_libraries(straggler_torch_python INTERFACE
  straggler_torch straggler_torch_lib::torch_python Python::Module)

message(STATUS "torch ${_torch_version} in ${_torch_dir}")
