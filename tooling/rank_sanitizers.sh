#!/usr/bin/env bash
# The torch layer under g++'s AddressSanitizer with UndefinedBehaviorSanitizer, or ThreadSanitizer: its C++ tests, and real
# ranks on gloo, on an instrumented _C in a Python and a torch that are not: tooling/rank_sanitizers.sh asan|tsan [WORD...]
#
# With words, only the jobs that have one of them in their names (tests/sanitizers/jobs.py). The first run builds the torch
# layer anew. What is found is printed, and in build/c10d-asan|tsan/sanitized.
set -euo pipefail
# shellcheck source=tooling/lib.sh
source "$(dirname "$0")/lib.sh"
[[ ${1:-} =~ ^(asan|tsan)$ ]] || fail "It takes asan or tsan." "tooling/rank_sanitizers.sh tsan"
use_build_tools
preset=c10d-$1
build=build/$preset
tooling/build.sh "$preset"

# The package as pip installs it, with this library in it; it is found before the one that is installed.
rm -rf "$build/package"
mkdir -p "$build/package"
cp -r python_registration/torch_straggler python_registration/torch_straggler_autoload.py "$build/package"
cp "$build"/python_registration/{_C.*.so,_build_info.py} "$build/package/torch_straggler"

.venv/bin/python tests/sanitizers/sanitized.py "$1" "$build" "${@:2}"
