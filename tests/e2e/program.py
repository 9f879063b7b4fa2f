"""Runs the program for the end-to-end tests: python3 tests/e2e/NAME.py PATH_OF_DEEPINFER."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NANO = SOURCE / "models" / "nano"
BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else None
# A home of its own: neither the user's cache nor variables decide which model is taken.
HOME = tempfile.TemporaryDirectory()


def environment(**extra):
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith(("DEEPINFER_", "HF_", "XDG_"))}
    return {**kept, "HOME": HOME.name, **extra}


def run(*args, stdin=b"", env=None, **options):
    """Returns the finished process; .out and .err are its text."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    options.setdefault("stdout", subprocess.PIPE)
    command = [arg if isinstance(arg, bytes) else os.fsencode(str(arg)) for arg in (BINARY, *args)]
    done = subprocess.run(command, input=stdin, stderr=subprocess.PIPE, env=env or environment(),
                          timeout=600, check=False, **options)
    done.out = (done.stdout or b"").decode("utf-8", "replace")
    done.err = done.stderr.decode("utf-8", "replace")
    return done


class ProgramTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def expect_error(self, done, code, *parts):
        self.assertEqual(done.returncode, code, done.err)
        self.assertIn("deepinfer: error: ", done.err)
        for part in parts:
            self.assertIn(part, done.err)


def main():
    if BINARY is None:
        sys.exit(__doc__)
    unittest.main(verbosity=1)
