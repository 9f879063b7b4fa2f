#!/usr/bin/env bash
# Writes docs/options.md from the option table.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
./build.sh --tests --target option_docs
build/release/tests/option_docs >docs/options.md
