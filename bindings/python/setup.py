"""Builds the wheel: CMake makes the package's extension module, setuptools packs it.

See docs/python.md. The source tree around this folder is needed, so there is no source package.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


def version():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(deepinfer VERSION ([0-9.]+)", text).group(1)


class CMakeBuild(build_ext):
    """build_ext whose option cmake_folder names a build folder that holds the module already."""

    user_options = build_ext.user_options + [
        ("cmake-folder=", None, "take the module of this CMake build instead of building one")]

    def initialize_options(self):
        super().initialize_options()
        self.cmake_folder = None

    def build_extension(self, ext):
        folder = self.cmake_folder or self.build_with_cmake()
        target = pathlib.Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pathlib.Path(folder) / "python" / "deepinfer" / target.name, target)

    @staticmethod
    def build_with_cmake():
        folder = str(BUILD / "wheel")
        subprocess.run(["cmake", "-S", str(ROOT), "-B", folder, "-G", "Ninja",
                        "-DCMAKE_BUILD_TYPE=Release", "-DDEEPINFER_BUILD_TESTS=OFF",
                        "-DDEEPINFER_BUILD_BENCHMARKS=OFF", "-DDEEPINFER_BUILD_PYTHON=ON",
                        # The interpreter that runs this is the one that will load the module.
                        f"-DPython3_EXECUTABLE={sys.executable}"], check=True)
        subprocess.run(["cmake", "--build", folder, "--target", "deepinfer_python",
                        "--parallel", str(len(os.sched_getaffinity(0)))], check=True)
        return folder


BUILD.mkdir(exist_ok=True)
setup(
    version=version(),
    packages=["deepinfer"],
    package_data={"deepinfer": ["py.typed", "*.pyi"]},
    ext_modules=[Extension("deepinfer._deepinfer", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
    options={"build": {"build_base": str(BUILD / "wheel-python")},
             "egg_info": {"egg_base": str(BUILD)}},
)
