#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every libFuzzer target of a build for some seconds, on a copy of its corpus.
#   tools/run_fuzzers.sh build/asan 10
set -euo pipefail

build=$1
seconds=$2
root=$(dirname "$(readlink -f "$0")")/..
count=0
for fuzzer in "$build"/fuzz/*_fuzz; do
  [ -x "$fuzzer" ] || continue
  name=$(basename "$fuzzer" _fuzz)
  work=$(mktemp -d)
  [ -d "$root/fuzz/corpus/$name" ] && cp -r "$root/fuzz/corpus/$name/." "$work"
  echo "fuzzing $name for $seconds s"
  if ! "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
    -artifact_prefix="$build/$name-" -verbosity=0 -print_final_stats=1 "$work" \
    >"$build/$name.txt" 2>&1; then
    tail -n 40 "$build/$name.txt"
    echo "run_fuzzers: $name failed; the input is in $build/$name-*" >&2
    exit 1
  fi
  grep -E 'stat::number_of_executed_units' "$build/$name.txt" || true
  rm -rf "$work"
  count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "run_fuzzers: no fuzz target in $build/fuzz" >&2; exit 1; }
