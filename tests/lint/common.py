"""What the lints share: the list of files, and how a lint reports."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77  # ctest shows the lint as skipped

# Data that programs wrote; nobody edits it by hand.
DATA_FOLDERS = ("models/", "tests/golden/data/", "tests/fuzz/corpus/")


def tracked_files(root=ROOT):
    """Paths relative to root that git tracks; None outside a git checkout."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    paths = listed.decode("utf-8").split("\0")
    return sorted(path for path in paths if path and os.path.isfile(os.path.join(root, path)))


def source_files(root=ROOT):
    """Tracked files without data; outside a checkout, every file of the source folders."""
    paths = tracked_files(root)
    if paths is None:
        paths = []
        for folder in ("src", "include", "bindings", "tests", "bench", "tools", "cmake", "docs"):
            for parent, _, names in os.walk(os.path.join(root, folder)):
                paths += [os.path.relpath(os.path.join(parent, name), root) for name in names]
    return sorted(path for path in paths if not path.startswith(DATA_FOLDERS))


def read(path, root=ROOT):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def finish(name, problems, checked):
    """Prints the problems and ends the process: status 1 when there are any."""
    for problem in problems:
        print(problem)
    print(f"{name}: {checked}, {len(problems)} problems")
    sys.exit(1 if problems else 0)
