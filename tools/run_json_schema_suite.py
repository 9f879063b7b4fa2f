#!/usr/bin/env python3
"""Judges the cases of a checkout of the public JSON-Schema-Test-Suite by `deepinfer grammar check`.

A test is refused if its schema is, else right or wrong by the verdict on its instance. Prints one
line a file, the refusals with -v, and every wrong verdict. Exit code 1 if a verdict is wrong.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

DRAFTS = {"draft4": "4", "draft6": "6", "draft7": "7", "draft2019-09": "2019-09",
          "draft2020-12": "2020-12"}


def judge(program, draft, formats, group):
    """("refused", why) or ("accepted", verdicts) of one group of tests with the same schema."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as schema:
        json.dump(group["schema"], schema, ensure_ascii=False)
        schema.flush()
        lines = "".join(json.dumps(test["data"]) + "\n" for test in group["tests"])
        done = subprocess.run(
            [program, "grammar", "check", "--json", "--draft", draft, "--formats", formats,
             schema.name, "-"],
            input=lines, capture_output=True, text=True, encoding="utf-8", check=False)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"{group['description']}: exit code {done.returncode}: {done.stderr}")
    if report["grammar"] == "refused":
        return "refused", report["error"]
    return "accepted", [entry["valid"] for entry in report["instances"]]


def run_file(arguments, draft, path):
    groups = json.loads(path.read_text(encoding="utf-8"))
    counts = collections.Counter()
    notes = []
    for group in groups:
        outcome, details = judge(arguments.program, draft, arguments.formats, group)
        counts["groups"] += 1
        counts["tests"] += len(group["tests"])
        if outcome == "refused":
            counts["refused groups"] += 1
            counts["refused"] += len(group["tests"])
            if arguments.verbose:
                notes.append(f"  refused: {group['description']}: {details}")
            continue
        for test, valid in zip(group["tests"], details, strict=True):
            if valid == test["valid"]:
                counts["right"] += 1
            else:
                counts["wrong"] += 1
                notes.append(f"  WRONG ({'valid' if valid else 'invalid'}): "
                             f"{group['description']}: {test['description']}")
    return path, counts, notes


def show(name, counts):
    print(f"{name:<36} tests {counts['tests']:>5}  right {counts['right']:>5}  "
          f"refused {counts['refused']:>4}  wrong {counts['wrong']:>3}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=pathlib.Path, help="folder of the checkout")
    parser.add_argument("--program", default="build/release/deepinfer")
    parser.add_argument("--draft", action="append", choices=sorted(DRAFTS),
                        help="may be given several times (default: all)")
    parser.add_argument("--optional", action="store_true", help="the optional tests instead")
    parser.add_argument("--formats", default="note", choices=["note", "assert", "ignore"])
    parser.add_argument("--file", action="append", help="only files of this name")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    wrong = 0
    for folder in arguments.draft or DRAFTS:
        root = arguments.suite / "tests" / folder
        paths = sorted((root / "optional").rglob("*.json") if arguments.optional
                       else root.glob("*.json"))
        if arguments.file:
            paths = [path for path in paths if path.name in arguments.file]
        total = collections.Counter()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [pool.submit(run_file, arguments, DRAFTS[folder], path) for path in paths]
            for job in jobs:
                path, counts, notes = job.result()
                show(str(path.relative_to(root.parent)), counts)
                if notes:
                    print("\n".join(notes))
                total.update(counts)
        show(f"{folder}, all", total)
        if total["tests"]:
            accepted = total["tests"] - total["refused"]
            print(f"{folder}: {100 * accepted / total['tests']:.1f} % of tests, "
                  f"{100 - 100 * total['refused groups'] / total['groups']:.1f} % of "
                  f"{total['groups']} schemas accepted")
        wrong += total["wrong"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
