#!/usr/bin/env python3
"""C++ sources are formatted as .clang-format says (`make format` does it)."""

import shutil
import subprocess
import sys

import common

TOOL = "clang-format-19"


def check(root):
    """Problems and the number of files; None for the problems without the tool."""
    if shutil.which(TOOL) is None:
        return None, 0
    paths = [path for path in common.source_files(root) if path.endswith((".h", ".cc"))]
    if not paths:
        return [], 0
    result = subprocess.run([TOOL, "--dry-run", "--Werror", "--ferror-limit=1", *paths], cwd=root,
                            capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return [], len(paths)
    named = {line.split(":")[0] for line in result.stderr.splitlines() if ": error:" in line}
    return [f"{path}: not formatted; run `make format`" for path in sorted(named)] or \
        [result.stderr], len(paths)


if __name__ == "__main__":
    found, count = check(sys.argv[1] if len(sys.argv) > 1 else common.ROOT)
    if found is None:
        print(f"formatting: skipped, {TOOL} is not installed")
        sys.exit(common.SKIPPED)
    common.finish("formatting", found, f"{count} files")
