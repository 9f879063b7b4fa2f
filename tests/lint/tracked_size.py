#!/usr/bin/env python3
"""All that git tracks stays under 60 MiB, so that a clone stays quick."""

import os
import sys

import common

LIMIT_BYTES = 60 << 20


def check(root, limit_bytes=LIMIT_BYTES):
    paths = common.tracked_files(root)
    if paths is None:
        return None, 0, 0
    sizes = {path: os.path.getsize(os.path.join(root, path)) for path in paths}
    total = sum(sizes.values())
    if total <= limit_bytes:
        return [], total, len(paths)
    largest = sorted(sizes, key=sizes.get, reverse=True)[:10]
    problems = [f"tracked files have {total} bytes; the limit is {limit_bytes}. The largest:"]
    problems += [f"  {sizes[path]:>10} {path}" for path in largest]
    return problems, total, len(paths)


if __name__ == "__main__":
    found, size, count = check(sys.argv[1] if len(sys.argv) > 1 else common.ROOT)
    if found is None:
        print("tracked_size: skipped, this is no git checkout")
        sys.exit(common.SKIPPED)
    common.finish("tracked_size", found, f"{count} files, {size / (1 << 20):.1f} MiB")
