"""The examples in Python and C++ print the same, and the type stubs name what there is."""

import ast
import inspect
import os
import pathlib
import subprocess
import sys
import unittest

from support import BINARY, NANO, main

import deepinfer
from deepinfer import _deepinfer

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def output(*command):
    return subprocess.run([*map(str, command), str(NANO)], check=True, capture_output=True,
                          text=True, timeout=600).stdout


class Examples(unittest.TestCase):
    def test_offline_inference_prints_the_same_in_both_languages(self):
        in_python = output(sys.executable, SOURCE / "examples" / "offline_inference.py")
        twin = os.path.join(os.path.dirname(BINARY), "offline_inference")
        self.assertEqual(in_python, output(twin))
        self.assertEqual(in_python.splitlines()[0], "17 + 25 = 42.")


class Stubs(unittest.TestCase):
    def test_stubs_have_every_class_and_attribute(self):
        text = (pathlib.Path(deepinfer.__file__).parent / "_deepinfer.pyi").read_text()
        stubs = {}
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                stubs[node.name] = {getattr(item, "name", None) or item.target.id
                                    for item in node.body if not isinstance(item, ast.Expr)}
        for name, cls in inspect.getmembers(_deepinfer, inspect.isclass):
            members = {member for member in vars(cls) if not member.startswith("_")}
            self.assertEqual(members, {member for member in stubs[name]
                                       if not member.startswith("_")}, name)
            for member in members:
                if cls not in (_deepinfer.LLM, _deepinfer.Error, _deepinfer.InvalidArgumentError):
                    self.assertTrue(getattr(cls, member).__doc__, f"{name}.{member}")
        for name in deepinfer.LLM.__dict__:
            if not name.startswith("_"):
                self.assertTrue(getattr(deepinfer.LLM, name).__doc__, name)

    def test_the_version_is_the_programs(self):
        version = subprocess.run([BINARY, "--version"], check=True, capture_output=True, text=True)
        self.assertIn(deepinfer.__version__, version.stdout)


if __name__ == "__main__":
    main()
