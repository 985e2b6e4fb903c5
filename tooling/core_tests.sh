#!/usr/bin/env bash
# Builds one preset and runs its C++ tests: tooling/core_tests.sh core|asan|tsan|dev
set -euo pipefail
# shellcheck source=tooling/lib.sh
source "$(dirname "$0")/lib.sh"
use_build_tools
tooling/build.sh "$1"
ctest --preset "$1" --parallel "$CMAKE_BUILD_PARALLEL_LEVEL"
