#!/usr/bin/env bash
# Usage: tools/run_fuzzers.sh BUILD_DIR SECONDS
# Runs every libFuzzer target of BUILD_DIR for SECONDS each, from the seeds in tests/fuzz/corpus.
# New inputs and findings stay in BUILD_DIR; a finding ends the run with its reproducer's path.
set -euo pipefail
(($# == 2)) || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
build_dir=$1
seconds=$2
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "SECONDS is \"$seconds\", not a positive integer" >&2; exit 2; }
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

count=0
for program in "$build_dir"/tests/fuzz_*; do
  [[ -x $program && -f $program ]] || continue
  name=${program##*/fuzz_}
  grown=$build_dir/fuzz/$name/corpus
  findings=$build_dir/fuzz/$name/findings
  mkdir -p "$grown" "$findings"
  echo "== $name: $seconds s"
  "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$findings/" "$grown" "$source_dir/tests/fuzz/corpus/$name" \
    2>"$build_dir/fuzz/$name/log" || {
    tail -40 "$build_dir/fuzz/$name/log" >&2
    echo "$name: a finding; the input is in $findings" >&2
    exit 1
  }
  grep -E 'stat::number_of_executed_units|stat::peak_rss_mb' "$build_dir/fuzz/$name/log"
  count=$((count + 1))
done
((count)) || { echo "no fuzz target in $build_dir/tests" >&2; exit 1; }
echo "$count fuzz targets ran without a finding"
