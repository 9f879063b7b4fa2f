#!/usr/bin/env python3
"""Objects of the CPU targets share no code with the rest of the program.

A function that several objects may define (weak: templates, inline functions) is kept once by the
linker, perhaps the copy compiled for instructions that the machine lacks. So every weak symbol of
such an object belongs to its target's namespace.

Usage: target_symbols.py TARGET=OBJECT[:OBJECT...] ...
"""

import re
import subprocess
import sys

import common

NAMESPACE = "deepinfer::kernels::cpu::"
# object, address, type, demangled name; W and w: weak, V and v: weak objects, u: unique.
SYMBOL = re.compile(r"^(.*?):[0-9a-f]+ ([A-Za-z]) (.*)$", re.MULTILINE)
# A pointer that C++ run times need, the same in every object.
HARMLESS = re.compile(r"^DW\.ref\.__gxx_personality")


def check_listing(target, listing):
    """Problems in the output of `nm -A --demangle --defined-only` for a target's objects."""
    problems = []
    for path, kind, name in SYMBOL.findall(listing):
        if kind in "WwVvu" and NAMESPACE + target + "::" not in name and not HARMLESS.match(name):
            problems.append(f"{path}: {name} may be shared with other code; make it inline by force "
                            f"or move it into the namespace of {target}")
    return problems


def check(targets):
    """(problems, number of objects) of {target: [object, ...]}; (None, 0) without nm."""
    problems, count = [], 0
    for target, objects in targets.items():
        if not objects:
            continue
        try:
            listing = subprocess.run(["nm", "-A", "--demangle", "--defined-only", *objects],
                                     capture_output=True, check=True, text=True).stdout
        except FileNotFoundError:
            return None, 0
        problems += check_listing(target, listing)
        count += len(objects)
    return problems, count


def main():
    targets = {}
    for argument in sys.argv[1:]:
        target, _, objects = argument.partition("=")
        targets[target] = [path for path in objects.split(":") if path]
    problems, count = check(targets)
    if problems is None:
        print("target_symbols: no nm")
        sys.exit(common.SKIPPED)
    if count == 0:
        problems.append("no objects given")
    common.finish("target_symbols", problems, f"{count} objects")


if __name__ == "__main__":
    main()
