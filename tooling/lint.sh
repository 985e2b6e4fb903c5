#!/usr/bin/env bash
# Checks the form of every file: clang-format, clang-tidy (names, common bugs), clang's lock analysis, ruff, mypy. With
# --rewrite it only lets the two formatters rewrite the files. Runs after set-up, and installs ruff and mypy into .venv where
# they are missing.
set -euo pipefail
# shellcheck source=tooling/lib.sh
source "$(dirname "$0")/lib.sh"

# Format and checks are version 14's: another version may want other line breaks.
tool() { command -v "$1-14" || command -v "$1" || fail "$1 is missing." "apt-get install clang-format clang-tidy clang"; }

clang_format() {
  local formatter
  formatter=$(tool clang-format)
  find backend python_registration tests bench \( -name '*.h' -o -name '*.cc' \) -print0 | xargs -0 "$formatter" "$@"
}

# clang_tidy OPTIONS...: the checks of .clang-tidy, and clang's lock analysis, on the files that it reads.
clang_tidy() {
  local checker
  checker=$(tool clang-tidy)
  xargs -n 2 -P "$CMAKE_BUILD_PARALLEL_LEVEL" "$checker" -p build/tidy --quiet "$@" 2>&1 |
    sed '/^[0-9]* warnings\? generated/d'
}

tidy_core() { find backend -name '*.cc' -not -path 'backend/c10d/*' | clang_tidy; }

# Where torch's headers and macros are, names and locks only.
tidy_c10d() { find backend/c10d python_registration -name '*.cc' | clang_tidy --checks='-*,readability-identifier-naming'; }

configure_tidy() {
  tool clang++ >/dev/null
  cmake --preset tidy --log-level=WARNING >/dev/null
}

install_python_tools() {
  if [[ ! -x .venv/bin/ruff || ! -x .venv/bin/mypy ]]; then
    .venv/bin/python tooling/requirements.py lint | xargs -d '\n' .venv/bin/python -m pip install --quiet
  fi
}

use_build_tools
install_python_tools
if [[ ${1:-} == --rewrite ]]; then
  clang_format -i
  .venv/bin/ruff format .
  exit
fi
stage clang-format clang_format --dry-run -Werror
stage "configuring for clang" configure_tidy
stage "clang-tidy, core" tidy_core
stage "clang-tidy, c10d and bindings" tidy_c10d
stage "ruff check" .venv/bin/ruff check --output-format concise .
stage "ruff format" .venv/bin/ruff format --check .
stage mypy .venv/bin/python -m mypy
