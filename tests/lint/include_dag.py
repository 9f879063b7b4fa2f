#!/usr/bin/env python3
"""Folders of src/ include each other only along the arrows of docs/architecture.md."""

import os
import re
import sys

import common

# folder: folders it may include besides itself and base. A longer folder name goes before a
# shorter one ("kernels/cpu" before "kernels"). Arrows beyond the first design have their reasons in
# docs/decisions/0001-include-arrows.md.
ARROWS = {
    # The public headers, include/deepinfer, and bindings/python; everything else lies in src/.
    "deepinfer": [],
    "python": ["deepinfer"],
    "base": [],
    "tensor": [],
    "config": ["tensor"],
    "loader": ["tensor", "config"],
    "tokenizer": ["tensor"],
    "chat": ["tensor"],
    "grammar/json_schema": ["grammar"],
    "grammar": [],
    "sampling": ["deepinfer", "tensor"],
    "cache": [],
    "sched": ["cache"],
    "kernels": ["tensor"],
    "kernels/reference": ["kernels", "tensor"],
    "kernels/cpu": ["kernels", "tensor"],
    "model/v41": ["kernels", "tensor", "config"],
    "spec": ["config"],
    "metrics": [],
    "exec": ["kernels", "model/v41", "sampling", "cache", "sched", "config", "deepinfer"],
    "engine": ["deepinfer", "exec", "sched", "cache", "grammar", "grammar/json_schema", "metrics", "config", "loader", "tokenizer", "chat", "sampling", "kernels",
               "kernels/reference", "kernels/cpu", "model/v41", "tensor"],
    "bench": ["deepinfer", "exec", "engine", "chat", "config", "loader", "tokenizer", "sampling", "model/v41", "kernels",
              "kernels/reference", "kernels/cpu", "tensor"],
    "cli": ["deepinfer", "bench", "engine", "config", "loader", "tokenizer", "chat", "model/v41", "kernels",
            "kernels/reference", "kernels/cpu", "sampling", "tensor", "grammar", "grammar/json_schema"],
}

# What is seen from outside knows the public API alone.
WITHOUT_BASE = ("deepinfer", "python")

# Header (as written in <>): the folders that may include it. Everything else is kept from slow or
# third-party headers, or from the file system.
RESTRICTED_HEADERS = {
    "fstream": ["base", "loader"],
    "sys/mman.h": ["base", "loader"],
    "curl/curl.h": ["loader"],
    "CLI/CLI.hpp": ["cli"],
    "histedit.h": ["cli"],
    "hwloc.h": ["base"],
    "pybind11/pybind11.h": ["python"],
}
# Never in a .h file: whoever includes it would pay for them or see their types. Forward
# declarations ("nlohmann/json_fwd.hpp") do no such harm.
NOT_IN_HEADERS = ("nlohmann/", "CLI/", "curl/", "openssl/", "spdlog/", "utf8proc.h", "histedit.h",
                  "hwloc.h")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_of(path):
    """The longest folder of ARROWS that holds src/<path>, else its own folder."""
    folder = os.path.dirname(path)
    parts = folder.split("/")
    for length in range(len(parts), 0, -1):
        candidate = "/".join(parts[:length])
        if candidate in ARROWS:
            return candidate
    return folder


def find_cycle(edges):
    """A list of nodes along a cycle of the graph {node: nodes}, or None."""
    state = {}

    def visit(node, trail):
        if state.get(node) == "done":
            return None
        if state.get(node) == "open":
            return trail[trail.index(node):] + [node]
        state[node] = "open"
        for target in edges.get(node, ()):
            cycle = visit(target, trail + [node])
            if cycle:
                return cycle
        state[node] = "done"
        return None

    for node in edges:
        cycle = visit(node, [])
        if cycle:
            return cycle
    return None


def check_file(path, text, exists, edges):
    """Problems of src/<path>; adds the folder arrows it draws to edges."""
    problems = []
    folder = folder_of(path)
    if folder not in ARROWS:
        return [f"{file_of(path)}: folder {folder} has no row in ARROWS of "
                "tests/lint/include_dag.py"]
    for kind, name in INCLUDE.findall(text):
        if (path.endswith(".h") and name.startswith(NOT_IN_HEADERS) and
                not name.endswith("_fwd.hpp")):
            problems.append(f"{file_of(path)}: <{name}> belongs in .cc files only")
        allowed_in = RESTRICTED_HEADERS.get(name)
        if allowed_in is not None and folder not in allowed_in:
            problems.append(f"{file_of(path)}: <{name}> is for {', '.join(allowed_in)} only")
        if kind == "<":
            continue
        if not exists(name):
            problems.append(f'{file_of(path)}: "{name}" is no file under src/ (paths start there)')
            continue
        target = folder_of(name)
        if target == folder:
            continue
        edges.setdefault(folder, set()).add(target)
        if target not in ARROWS[folder] and (target != "base" or folder in WITHOUT_BASE):
            problems.append(f'{file_of(path)}: {folder} may not include {target} ("{name}")')
    return problems


def file_of(path):
    """Where the header or source lies that is included as <path>."""
    roots = {"deepinfer": "include/", "python": "bindings/"}
    return roots.get(path.split("/")[0], "src/") + path


def check(root):
    paths = [path[path.index("/") + 1:] for path in common.source_files(root)
             if path.startswith(("src/", "include/", "bindings/")) and
             path.endswith((".h", ".cc"))]
    edges = {}
    problems = []
    for path in paths:
        problems += check_file(path, common.read(file_of(path), root),
                               lambda name: os.path.isfile(os.path.join(root, file_of(name))), edges)
    cycle = find_cycle(ARROWS) or find_cycle(edges)
    if cycle:
        problems.append("folders include each other in a cycle: " + " -> ".join(cycle))
    return problems, len(paths)


if __name__ == "__main__":
    found, count = check(sys.argv[1] if len(sys.argv) > 1 else common.ROOT)
    common.finish("include_dag", found, f"{count} files")
