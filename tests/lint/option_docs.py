#!/usr/bin/env python3
"""docs/options.md is what the option table generates; the program reads every option, and no
variable that is not documented.

Usage: option_docs.py OPTION_DOCS_PROGRAM
"""

import os
import re
import subprocess
import sys

import common

DOCUMENT = "docs/options.md"
VARIABLE = re.compile(r'"(DEEPINFER_[A-Z0-9_]*[A-Z0-9])"')
OPTION_ROW = re.compile(r"^\| `--([a-z-]+) ", re.MULTILINE)


def check_document(generated, written):
    if generated == written:
        return []
    return [f"{DOCUMENT} differs from the option table; run tools/update_option_docs.sh"]


def check_reads(generated, sources):
    """Options of the generated document whose field no source outside src/config reads.

    A read is `.field` or `->field` behind a variable whose name is or ends in options or values
    (ResolvedOptions::values).
    """
    users = [text for path, text in sources.items() if not path.startswith("src/config/")]
    problems = []
    for name in OPTION_ROW.findall(generated):
        field = name.replace("-", "_")
        read = re.compile(r"(?:options|values)_?(?:\.|->)" + field + r"\b")
        if not any(read.search(text) for text in users):
            problems.append(f"option {name}: nothing in src/ reads Options::{field}")
    return problems


def check_variables(generated, sources):
    """Variables that sources name in a string but the generated document does not."""
    return sorted(f"{path}: {name} is not in {DOCUMENT}" for path, text in sources.items()
                  for name in set(VARIABLE.findall(text)) if f"`{name}`" not in generated)


if __name__ == "__main__":
    document = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout
    on_disk = ""
    if os.path.isfile(os.path.join(common.ROOT, DOCUMENT)):
        on_disk = common.read(DOCUMENT)
    code = {path: common.read(path) for path in common.source_files()
            if path.startswith(("src/", "bench/")) and path.endswith((".h", ".cc"))}
    names = OPTION_ROW.findall(document)
    found = check_document(document, on_disk) + check_reads(document, code)
    found += check_variables(document, code)
    if not names:
        found.append("the program printed no option")
    common.finish("option_docs", found, f"{len(names)} options")
