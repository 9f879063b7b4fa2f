#!/usr/bin/env bash
# Usage: tools/run_benchmarks.sh BUILD_DIR [ARGUMENT]...
# Runs every benchmark program of BUILD_DIR; arguments go to each (--benchmark_filter=REGEX).
set -euo pipefail
(($# >= 1)) || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
build_dir=$1
shift
count=0
for program in "$build_dir"/bench/bench_*; do
  [[ -x $program && -f $program ]] || continue
  echo "== ${program##*/}"
  "$program" "$@"
  count=$((count + 1))
done
((count)) || { echo "no benchmark in $build_dir/bench; ./build.sh --bench builds them" >&2; exit 1; }
