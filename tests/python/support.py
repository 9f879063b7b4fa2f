"""What the tests of the Python package share: python3 tests/python/test_NAME.py PATH_OF_DEEPINFER.

PYTHONPATH names the folder that holds the package.
"""

import logging
import os
import pathlib
import subprocess
import sys
import time
import unittest

NANO = pathlib.Path(__file__).resolve().parents[2] / "models" / "nano"
BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else None
# The user's options must not change results.
for variable in [name for name in os.environ if name.startswith("DEEPINFER_")]:
    del os.environ[variable]

logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of calls that take their time

from deepinfer import LLM, SamplingParams  # noqa: E402

# Goes on until the context is full: seconds, unless somebody ends it.
ENDLESS = SamplingParams(max_tokens=1 << 20, ignore_eos=True)


def open_llm(**options):
    return LLM(model=NANO, **options)


def program(*args):
    """Standard output of the program."""
    return subprocess.run([BINARY, *args, "--model", str(NANO)], check=True, capture_output=True,
                          text=True, timeout=600).stdout


def wait_until(condition):
    """Waits for what another thread brings about; fails after a minute."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the condition did not come true")
        time.sleep(0.001)


class EngineTest(unittest.TestCase):
    """Tests on one engine."""

    @classmethod
    def setUpClass(cls):
        cls.llm = open_llm()
        cls.addClassCleanup(cls.llm.close)


def main():
    if BINARY is None:
        sys.exit(__doc__)
    unittest.main(verbosity=1)
