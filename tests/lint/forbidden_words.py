#!/usr/bin/env python3
"""No note to self stands in the sources: what is missing is an issue, not a comment."""

import re
import sys

import common

# Spelled in halves, so that this file does not name them.
WORDS = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]
PATTERN = re.compile(r"(?<![A-Za-z0-9_])(" + "|".join(WORDS) + r")(?![A-Za-z0-9_])")


def check_text(path, text):
    return [f"{path}:{number}: {match.group(1)}"
            for number, line in enumerate(text.splitlines(), 1)
            for match in PATTERN.finditer(line)]


def check(root):
    paths = common.source_files(root)
    problems = []
    for path in paths:
        problems += check_text(path, common.read(path, root))
    return problems, len(paths)


if __name__ == "__main__":
    found, count = check(sys.argv[1] if len(sys.argv) > 1 else common.ROOT)
    common.finish("forbidden_words", found, f"{count} files")
