#!/usr/bin/env bash
# Builds the decoder's fuzzer and runs it: tooling/fuzz.sh SECONDS
#
# It begins with tests/fuzz/corpus/codec and what earlier runs found (build/fuzz/found); bytes that break a property are
# left in build/fuzz, and printed. Every run takes another path; what it needs to repeat a failure is those bytes.
#
#   tooling/fuzz.sh --corpus   writes tests/fuzz/corpus/codec anew: after each change of the codec
set -euo pipefail
# shellcheck source=tooling/lib.sh
source "$(dirname "$0")/lib.sh"
use_build_tools
corpus=tests/fuzz/corpus/codec
built=build/fuzz/tests/fuzz
command -v clang++ >/dev/null || fail "There is no clang++, which the fuzzers need." "apt-get install clang"
[[ ${1:-} =~ ^([0-9]+|--corpus)$ ]] || fail "It takes seconds, or --corpus." "tooling/fuzz.sh 20"
tooling/build.sh fuzz

if [[ $1 == --corpus ]]; then
  rm -rf "$corpus"
  "$built/codec_corpus" "$corpus"
  exit
fi

# A corpus of an earlier codec is refused at its first byte, and begins nothing.
rm -rf build/fuzz/fresh
"$built/codec_corpus" build/fuzz/fresh
diff -rq build/fuzz/fresh "$corpus" ||
  fail "$corpus is not what this codec writes." "tooling/fuzz.sh --corpus, and commit it"

mkdir -p build/fuzz/found
UBSAN_OPTIONS=print_stacktrace=1 "$built/codec_fuzzer" -max_total_time="$1" -max_len=4096 -timeout=10 \
  -print_final_stats=1 -verbosity=0 -artifact_prefix=build/fuzz/ build/fuzz/found "$corpus"
