#!/usr/bin/env bash
# Usage: tools/run_clang_tidy.sh [FILE.cc]...
# Runs clang-tidy-19 with .clang-tidy over the given sources, else over all of src/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
./build.sh --preset clang --packages-only
cmake --preset clang >/dev/null
if (($# == 0)); then mapfile -t files < <(git ls-files -- 'src/*.cc'); else files=("$@"); fi
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 -p build/clang --quiet --warnings-as-errors='*'
echo "clang-tidy: ${#files[@]} files are clean"
