#!/usr/bin/env bash
# Measures a checkpoint over batch sizes and context depths and draws the results.
set -euo pipefail

usage() {
  cat <<TEXT
Usage: bench/run_sweep.sh MODEL OUTDIR [BENCH-FLAGS...]

MODEL is a checkpoint folder. OUTDIR gets records.jsonl, a line a measurement (ceilings, loading,
prefill, decode), speed_over_batch.svg and speed_over_context.svg. BENCH-FLAGS go to every
measurement, for example --threads 2 --repeat 3.

BINARY    the program (default build/release/deepinfer)
BATCHES   sequences decoded together (default 1,2,4,8,16)
CONTEXTS  tokens before those decoded (default 1024,4096,16384,65536; those beyond the checkpoint's
          own context are left out). Contexts are synthetic: see docs/operations.md
PROMPTS   prompt lengths (default 128,1024)
TEXT
}

fail() {
  echo "run_sweep.sh: $*" >&2
  exit 1
}

[[ ${1:-} == --help || ${1:-} == -h ]] && { usage; exit 0; }
(($# >= 2)) || { usage >&2; exit 2; }
readonly MODEL=$1 OUTDIR=$2
shift 2
readonly ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly BINARY=${BINARY:-$ROOT/build/release/deepinfer}
[[ -x $BINARY ]] || fail "no program $BINARY; build it or set BINARY"
[[ -f $MODEL/config.json ]] || fail "no checkpoint in $MODEL (config.json is missing)"
mkdir -p "$OUTDIR"

# The values of a comma-separated list up to a limit.
up_to() {
  local limit=$1 value kept=()
  local -a values
  IFS=, read -ra values <<<"$2"
  for value in "${values[@]}"; do
    ((value <= limit)) && kept+=("$value")
  done
  ((${#kept[@]})) || fail "none of $2 fits the checkpoint's context of $limit tokens"
  local IFS=,
  echo "${kept[*]}"
}

context=$(python3 -c '
import json, sys
config = json.load(open(sys.argv[1]))
print(config.get("text_config", config)["max_position_embeddings"])' "$MODEL/config.json")
# Decoded tokens need room behind the deepest context.
contexts=$(up_to $((context - 200)) "${CONTEXTS:-1024,4096,16384,65536}")
prompts=$(up_to "$context" "${PROMPTS:-128,1024}")
batches=${BATCHES:-1,2,4,8,16}

readonly RECORDS=$OUTDIR/records.jsonl
: >"$RECORDS"
"$BINARY" bench ceiling --json "$@" >>"$RECORDS"
"$BINARY" bench load --json --model "$MODEL" "$@" >>"$RECORDS"
"$BINARY" bench prefill --json --model "$MODEL" --prompt-tokens "$prompts" --modes off,compact \
  "$@" >>"$RECORDS"
"$BINARY" bench decode --json --model "$MODEL" --context "$contexts" --batch "$batches" \
  --synthetic-context "$@" >>"$RECORDS"
python3 "$ROOT/tools/plot_sweep.py" "$RECORDS" "$OUTDIR"
echo "$RECORDS"
echo "$OUTDIR/speed_over_batch.svg"
echo "$OUTDIR/speed_over_context.svg"
