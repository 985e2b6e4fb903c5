#!/usr/bin/env bash
# Builds the fuzzers of tests/fuzz and runs them: tooling/fuzz.sh SECONDS [FUZZER...]
#
# All of them, or those that are named, one after the other; they share the seconds. Each begins with its folder of
# tests/fuzz/corpus and with what earlier runs found (build/fuzz/found); bytes that break a property are left in build/fuzz,
# and printed. Every run takes another path; what it needs to repeat a failure is those bytes.
#
#   tooling/fuzz.sh --corpus   writes tests/fuzz/corpus anew: after each change of what is decoded
set -euo pipefail
# shellcheck source=tooling/lib.sh
source "$(dirname "$0")/lib.sh"
use_build_tools
corpus=tests/fuzz/corpus
built=build/fuzz/tests/fuzz
command -v clang++ >/dev/null || fail "There is no clang++, which the fuzzers need." "apt-get install clang"
[[ ${1:-} =~ ^([0-9]+|--corpus)$ ]] || fail "It takes seconds, or --corpus." "tooling/fuzz.sh 20"
tooling/build.sh fuzz

if [[ $1 == --corpus ]]; then
  rm -rf "$corpus"
  "$built/corpora" "$corpus"
  exit
fi

# A corpus of an earlier codec is refused at its first byte, and begins nothing.
rm -rf build/fuzz/fresh
"$built/corpora" build/fuzz/fresh
diff -rq build/fuzz/fresh "$corpus" ||
  fail "$corpus is not what is decoded now." "tooling/fuzz.sh --corpus, and commit it"

seconds=$1
shift
fuzzers=("$@")
[[ $# -gt 0 ]] || mapfile -t fuzzers < <(ls "$corpus")
share=$((seconds / ${#fuzzers[@]}))
((share > 0)) || fail "${#fuzzers[@]} fuzzers need at least as many seconds." "tooling/fuzz.sh 20"
for fuzzer in "${fuzzers[@]}"; do
  [[ -x $built/${fuzzer}_fuzzer ]] || fail "There is no fuzzer $fuzzer." "ls $corpus"
  printf '%s_fuzzer, %d s\n' "$fuzzer" "$share"
  mkdir -p "build/fuzz/found/$fuzzer"
  UBSAN_OPTIONS=print_stacktrace=1 "$built/${fuzzer}_fuzzer" -max_total_time="$share" -max_len=8192 -timeout=10 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="build/fuzz/$fuzzer-" "build/fuzz/found/$fuzzer" "$corpus/$fuzzer"
done
