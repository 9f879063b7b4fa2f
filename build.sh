#!/usr/bin/env bash
# Installs what is missing and builds DeepInfer. See --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly ALLOWED_PRESETS="release debug clang asan-ubsan tsan fuzz"
readonly BUILD_PACKAGES=(
  g++ cmake ninja-build pkg-config libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev
  libutf8proc-dev libxxhash-dev libexpected-dev libcurl4-openssl-dev libssl-dev libedit-dev
  libhwloc-dev)
readonly TEST_PACKAGES=(
  libgtest-dev libgmock-dev librapidcheck-dev libpcre2-dev libvalijson-dev python3 git
  clang-format-19)
readonly PYTHON_PACKAGES=(python3-dev pybind11-dev python3-pip python3-setuptools python3-wheel)
readonly BENCH_PACKAGES=(libbenchmark-dev libdnnl-dev)
readonly CLANG_PACKAGES=(clang-19 libclang-rt-19-dev)

usage() {
  cat <<TEXT
Usage: ./build.sh [--preset NAME] [--tests] [--bench] [--python] [--target NAME]...
                  [--packages-only]

Installs missing Debian packages where it may (root, or sudo without a password),
configures with CMake and builds into build/NAME.

  --preset NAME    one of: $ALLOWED_PRESETS (default release)
  --tests          build the tests too
  --bench          build the benchmarks too
  --python         build the Python package too, into build/NAME/python (--tests does as well)
  --target NAME    build only this target (may be given several times)
  --packages-only  install the packages and stop
  --help           this text

DEEPINFER_ACCELERATOR selects the back end: cpu (the default). nvidia and ascend
name back ends that this version does not have; they are refused.
TEXT
}

fail() {
  echo "build.sh: $*" >&2
  exit 1
}

check_accelerator() {
  case "${DEEPINFER_ACCELERATOR:-cpu}" in
    cpu) ;;
    nvidia | ascend)
      fail "DEEPINFER_ACCELERATOR=$DEEPINFER_ACCELERATOR: this version has no such back end yet;" \
        "the value it builds is cpu" ;;
    *)
      fail "DEEPINFER_ACCELERATOR=$DEEPINFER_ACCELERATOR is not one of cpu, nvidia, ascend" \
        "(of which this version builds cpu)" ;;
  esac
}

# Prints the packages of its arguments that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null) == "ii "* ]] ||
      echo "$package"
  done
}

# Sets install_hint when packages stay missing: the build may still find them elsewhere.
install_packages() {
  install_hint=""
  if ! command -v dpkg-query >/dev/null; then
    install_hint="this is no Debian system; what is needed is, by Debian's names: $*"
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  local as_root=()
  if ((EUID != 0)); then
    if sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      install_hint="run: sudo apt-get install -y --no-install-recommends ${missing[*]}"
      echo "build.sh: packages are missing; $install_hint" >&2
      return
    fi
  fi
  echo "build.sh: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q || true  # one unreachable source must not stop the others
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null ||
    fail "apt-get could not install the packages above"
}

preset=release
with_tests=0
with_bench=0
with_python=0
packages_only=0
targets=()
while (($#)); do
  case "$1" in
    --preset | --target)
      (($# >= 2)) || fail "$1 needs a value"
      if [[ $1 == --preset ]]; then preset=$2; else targets+=("$2"); fi
      shift ;;
    --tests) with_tests=1 ;;
    --bench) with_bench=1 ;;
    --python) with_python=1 ;;
    --packages-only) packages_only=1 ;;
    --help | -h) usage; exit 0 ;;
    *) fail "unknown argument $1 (--help lists them)" ;;
  esac
  shift
done
[[ " $ALLOWED_PRESETS " == *" $preset "* ]] ||
  fail "--preset $preset is not one of: $ALLOWED_PRESETS"
((with_python)) && [[ $preset == asan-ubsan || $preset == tsan || $preset == fuzz ]] &&
  fail "--python goes with the presets release, debug and clang; $preset has sanitizers"
[[ $preset == fuzz ]] && with_tests=1
check_accelerator

packages=("${BUILD_PACKAGES[@]}")
((with_tests)) && packages+=("${TEST_PACKAGES[@]}")
((with_tests || with_python)) && packages+=("${PYTHON_PACKAGES[@]}")
((with_bench)) && packages+=("${BENCH_PACKAGES[@]}")
[[ $preset == clang || $preset == asan-ubsan || $preset == tsan || $preset == fuzz ]] &&
  packages+=("${CLANG_PACKAGES[@]}")
install_packages "${packages[@]}"
((packages_only)) && exit 0

# Tests and benchmarks once configured stay on, so that a plain build does not undo them.
configure=()
[[ -f build/$preset/CMakeCache.txt ]] ||
  configure+=(-DDEEPINFER_BUILD_TESTS=OFF -DDEEPINFER_BUILD_BENCHMARKS=OFF)
((with_tests)) && configure+=(-DDEEPINFER_BUILD_TESTS=ON)
((with_bench)) && configure+=(-DDEEPINFER_BUILD_BENCHMARKS=ON)
cmake --preset "$preset" "${configure[@]}" || fail "configuring failed${install_hint:+; $install_hint}"

build=(--build "build/$preset" --parallel "$(nproc)")
if ((${#targets[@]})); then
  build+=(--target "${targets[@]}")
elif ((!with_tests && !with_bench)); then
  build+=(--target deepinfer)
  ((with_python)) && build+=(--target deepinfer_python)
fi
cmake "${build[@]}" || fail "building failed${install_hint:+; $install_hint}"
echo "build.sh: built into build/$preset"
