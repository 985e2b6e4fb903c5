#!/usr/bin/env bash
# Builds one preset and runs its C++ tests, which with c10d are the core's and those of the torch layer:
# tooling/core_tests.sh c10d|core|asan|tsan|clang|dev
set -euo pipefail
# shellcheck source=tooling/lib.sh
source "$(dirname "$0")/lib.sh"
use_build_tools
tooling/build.sh "$1"
ctest --preset "$1" --parallel "$CMAKE_BUILD_PARALLEL_LEVEL"
