# Sourced by the scripts of this folder: the repository's root as working folder, stages with their time, failures that
# name the command that helps.
# shellcheck shell=bash

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# stage TITLE COMMAND...: runs the command under a heading, and says how long it took.
stage() {
  local title=$1 begin=$SECONDS
  shift
  printf '==> %s\n' "$title"
  "$@"
  printf '    %s: %d s\n' "$title" $((SECONDS - begin))
}

# fail SENTENCE COMMAND: ends the script; COMMAND is what the reader can do about it.
fail() {
  printf '\nerror: %s\n       %s\n' "$1" "$2" >&2
  exit 1
}

# Puts .venv's cmake and ninja, if set-up had to install them, before the system's, and takes ninja where there is one.
# Two gigabytes of memory a compiler: a file that includes torch needs nearly that.
use_build_tools() {
  PATH=$PWD/.venv/bin:$PATH
  command -v cmake >/dev/null || fail "CMake is missing." "make setup"
  if command -v ninja >/dev/null; then export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}; fi
  local cores gigabytes
  cores=$(nproc)
  gigabytes=$(awk '/^MemTotal/ { print int($2 / 1048576) }' /proc/meminfo)
  local jobs=$((gigabytes / 2 < cores ? gigabytes / 2 : cores))
  export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$((jobs > 0 ? jobs : 1))}
}
