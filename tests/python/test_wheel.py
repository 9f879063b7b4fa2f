"""The wheel builds without a network and works, installed, from any folder."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from support import NANO, main

import deepinfer

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(deepinfer.__file__).resolve().parents[2]
SCRIPT = """
import deepinfer
with deepinfer.LLM(model={model!r}) as llm:
    print(deepinfer.__file__, llm.generate("It was")[0].outputs[0].text[:7], sep="\\n")
"""


def has_module(name):
    return subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True,
                          check=False).returncode == 0


class Wheel(unittest.TestCase):
    def run_python(self, *args, **environment):
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run([sys.executable, *args], cwd=self.folder, capture_output=True,
                              text=True, timeout=800, check=False, env={**kept, **environment})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def setUp(self):
        for name in ("pip", "wheel", "setuptools"):
            if not has_module(name):
                self.skipTest(f"python3-{name} is not installed")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_wheel_runs_outside_of_the_tree(self):
        config = self.folder / "build.cfg"
        config.write_text(f"[build_ext]\ncmake_folder = {BUILD}\n"
                          f"[build]\nbuild_base = {self.folder / 'base'}\n"
                          f"[egg_info]\negg_base = {self.folder}\n")
        self.run_python("-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index",
                        "--wheel-dir", str(self.folder), str(SOURCE / "bindings" / "python"),
                        DIST_EXTRA_CONFIG=str(config))
        (wheel,) = self.folder.glob("deepinfer-*.whl")
        installed = self.folder / "installed"
        self.run_python("-m", "pip", "install", "--no-deps", "--no-index", "--target",
                        str(installed), str(wheel))
        lines = self.run_python("-c", SCRIPT.format(model=str(NANO)),
                                PYTHONPATH=str(installed)).splitlines()
        self.assertEqual(lines, [str(installed / "deepinfer" / "__init__.py"), " a long"])
        names = {path.name for path in (installed / "deepinfer").iterdir()}
        self.assertLessEqual({"py.typed", "_deepinfer.pyi", "_llm.py", "_stream.py"}, names)


if __name__ == "__main__":
    main()
