#!/usr/bin/env bash
# Makes .venv: torch, the build tools, and this project with what its tests need. A second run does nothing; after a change
# of the sources it builds and installs the project again, which compiles only what changed.
#
#   PYTHON   the Python to make .venv with; default: the newest of 3.11 to 3.14 that has its headers and the venv module
#   TORCH    the torch to install, as pip takes it, options included; default: torch
#
# .venv/.straggler-setup says what is installed: the wanted torch, the torch that is there, digests of pyproject.toml and of
# the sources. What pip and the compiler print in full is in build/setup.log.
set -euo pipefail
# shellcheck source=tooling/lib.sh
source "$(dirname "$0")/lib.sh"

TORCH=${TORCH:-torch}
PYTHON=${PYTHON:-}
stamp=.venv/.straggler-setup
log=build/setup.log

# ---- What is installed ----

installed() { compgen -G ".venv/lib/python3.*/site-packages/$1-*.dist-info" | head -n 1 || true; }

digest() { find "$@" -type f -not -name '*.pyc' -print0 2>/dev/null | sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16; }

environment_state() { printf 'wanted: %s\ntorch: %s\npyproject: %s\n' "$TORCH" "$(installed torch)" "$(digest pyproject.toml)"; }

project_state() {
  printf 'project: %s\nsources: %s\n' "$(installed torch_straggler)" \
    "$(digest CMakeLists.txt cmake backend python_registration bench/skew)"
}

# ---- Python ----

# The command that installs PACKAGE's part for Python VERSION: python_package 3.12 dev
python_package() { printf 'apt-get install python%s-%s' "$1" "$2"; }

# Says what a Python lacks: "ok 3.12", "old 3.9", "dev 3.12" (no headers), "venv 3.12"; nothing if it does not run.
python_lacks() {
  "$1" - 2>/dev/null <<'EOF' || true
import importlib.util, os, sys, sysconfig
headers = os.path.join(sysconfig.get_path("include"), "Python.h")
if sys.version_info < (3, 11):
    lacks = "old"
elif not os.path.exists(headers):
    lacks = "dev"
elif not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
    lacks = "venv"
else:
    lacks = "ok"
print(lacks, "%d.%d" % sys.version_info[:2])
EOF
}

refuse_python() {
  local name=$1 lacks=$2 version=$3
  case $lacks in
    old) fail "$name is Python $version; torch needs 3.11 or later." \
      "install Python 3.11 or later with its headers, then: make setup PYTHON=/path/to/python3" ;;
    dev) fail "The headers of $name (Python $version) are missing." "$(python_package "$version" dev)" ;;
    venv) fail "$name (Python $version) has no venv module." "$(python_package "$version" venv)" ;;
    *) fail "$name is not a Python that runs." "make setup PYTHON=/path/to/python3" ;;
  esac
}

# Sets python to the chosen one, or says what the best one lacks.
choose_python() {
  local candidate lacks version blame=()
  for candidate in ${PYTHON:-python3.14 python3.13 python3.12 python3.11 python3}; do
    read -r lacks version <<<"$(python_lacks "$candidate")"
    if [[ $lacks == ok ]]; then
      python=$candidate
      return
    fi
    if [[ -n $lacks && (${#blame[@]} -eq 0 || ${blame[1]} == old) ]]; then blame=("$candidate" "$lacks" "$version"); fi
  done
  [[ ${#blame[@]} -gt 0 ]] && refuse_python "${blame[@]}"
  [[ -n $PYTHON ]] && refuse_python "$PYTHON" "" ""
  fail "No Python 3.11 or later was found." "apt-get install python3 python3-dev python3-venv"
}

# ---- Checks before anything is downloaded ----

check_compiler() {
  local compiler=${CXX:-c++}
  command -v "${compiler%% *}" >/dev/null || fail "There is no C++ compiler." "apt-get install g++"
  $compiler -std=c++20 -x c++ -fsyntax-only - 2>/dev/null <<<'#include <concepts>
#include <string>
static_assert(std::integral<int>);' ||
    fail "$compiler does not compile C++20." "apt-get install g++ (version 11 or later), or: make setup with CXX=/path/to/g++"
}

check_space() {
  local needed=2 free
  if [[ -z $(installed torch) && $TORCH == torch ]]; then needed=8; fi
  free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
  ((free >= needed)) || fail "Only $free GB are free here; set-up needs about $needed GB." \
    "free some space (df -h .), or name a smaller torch, as a wheel without CUDA: make setup TORCH=…"
}

check_python() {
  if [[ ! -e .venv/bin/python ]]; then
    choose_python
    return
  fi
  local lacks version wanted
  read -r lacks version <<<"$(python_lacks .venv/bin/python)"
  [[ -n $lacks ]] || fail "The Python that .venv was made with is gone." "rm -rf .venv && make setup"
  [[ $lacks == ok ]] || refuse_python .venv/bin/python "$lacks" "$version"
  if [[ -n $PYTHON ]]; then
    read -r lacks wanted <<<"$(python_lacks "$PYTHON")"
    [[ $lacks == ok ]] || refuse_python "$PYTHON" "$lacks" "$wanted"
    [[ $wanted == "$version" ]] || fail ".venv is of Python $version, PYTHON=$PYTHON is $wanted." "rm -rf .venv && make setup PYTHON=$PYTHON"
  fi
}

check_machine() {
  check_compiler
  check_python
  check_space
}

# ---- Installing ----

# Reads pip's whole output, prints what shows progress: downloads from a megabyte on, compiled files, packages.
condense() {
  sed -unE \
    -e 's/^ *Downloading ([^-]+-[^-]+)-.*(\([0-9.]+ [MG]B\))$/    downloading \1 \2/p' \
    -e 's/^ *(\[[ 0-9]+[%/][0-9]*\]) Building CXX .*\/([^ ]+)\.o$/    \1 compiling \2/p' \
    -e 's/^Installing collected packages: .*$/    installing/p'
}

pip_install() {
  : >"$log"
  if ! .venv/bin/python -m pip install --retries 2 --progress-bar off "$@" 2>&1 | tee "$log" | condense; then explain_failure; fi
}

# Ends with the sentence that fits what pip said; the order matters, since pip ends a failed download in "no matching".
explain_failure() {
  local range
  range=$(.venv/bin/python tooling/requirements.py torch)
  said() { grep -qiE "$1" "$log"; }
  if said 'No space left on device'; then
    fail "The disk is full (a temporary folder counts: TMPDIR is ${TMPDIR:-/tmp})." "df -h . /tmp; TMPDIR=/a/folder/with/space make setup"
  elif said 'NewConnectionError|NameResolutionError|ConnectTimeout|Temporary failure in name resolution|Network is unreachable|ProxyError|Read timed out|SSLError'; then
    fail "The package index cannot be reached." "check the connection, or name another index (PIP_INDEX_URL=…), then: make setup"
  elif said 'ResolutionImpossible|conflicting dependencies'; then
    fail "TORCH='$TORCH' names no torch that exists and that this project builds against." "make setup TORCH='$range'"
  elif said 'No matching distribution found for torch'; then
    fail "No torch for '$TORCH' ($range) is offered to $(.venv/bin/python -V)." "rm -rf .venv && make setup PYTHON=python3.12, or another TORCH"
  elif said 'Killed signal terminated program'; then
    fail "The compiler ran out of memory." "CMAKE_BUILD_PARALLEL_LEVEL=1 make setup"
  fi
  grep -nE 'error:|ERROR|CMake Error' -A 6 "$log" | cut -c 1-200 | head -n 40 >&2
  fail "pip stopped at the error above." "less $log"
}

make_venv() { "$python" -m venv .venv; }

install_torch() {
  local words=()
  read -ra words <<<"$TORCH"
  .venv/bin/python tooling/requirements.py torch >build/supported_torch.txt
  pip_install "${words[@]}" --constraint build/supported_torch.txt
}

install_build_tools() {
  local tools=()
  mapfile -t tools < <(.venv/bin/python tooling/requirements.py build)
  command -v ninja >/dev/null || tools+=(ninja)
  local version
  version=$(cmake --version 2>/dev/null | awk 'NR == 1 { print $3 }') || true
  [[ $(printf '3.24\n%s\n' "$version" | sort -V | head -n 1) == 3.24 ]] || tools+=('cmake>=3.24')
  pip_install "${tools[@]}"
}

install_project() {
  use_build_tools
  pip_install --verbose --no-build-isolation "$@"
}

# ---- The set-up ----

if [[ -f $stamp && $(<"$stamp") == "$(environment_state && project_state)" ]]; then
  check_python
  exit 0
fi

mkdir -p build
stage "checking compiler, Python and space" check_machine
if [[ ! -x .venv/bin/python ]]; then stage "making .venv with $python" make_venv; fi
if [[ -f $stamp && $(head -n 3 "$stamp") == "$(environment_state)" ]]; then
  stage "building and installing torch_straggler" install_project --no-deps --force-reinstall .
else
  stage "installing $TORCH (up to 3 GB to download)" install_torch
  stage "installing the build tools" install_build_tools
  stage "building and installing torch_straggler with what its tests need (some minutes the first time)" install_project ".[test]"
fi
printf '%s\n' "$(environment_state && project_state)" >"$stamp"
printf '==> set up in %d s\n' "$SECONDS"
