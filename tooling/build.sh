#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json: tooling/build.sh PRESET
set -euo pipefail
# shellcheck source=tooling/lib.sh
source "$(dirname "$0")/lib.sh"
use_build_tools
preset=${1:?usage: tooling/build.sh PRESET}
cmake --preset "$preset" --log-level=WARNING >/dev/null
cmake --build --preset "$preset"
