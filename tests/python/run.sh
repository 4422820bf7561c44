#!/bin/sh
# The tests of the Python package, on the library and the command of a build folder (nothing is installed).
# SKIP where no Python has numpy; HONE_PYTHON names one.
# usage: run.sh BUILD
set -u
build=$1
for python in "${HONE_PYTHON:-}" python3; do
  [ -n "$python" ] && "$python" -c 'import sys, numpy; assert sys.version_info >= (3, 9)' 2>/dev/null && break
  python=
done
[ -n "$python" ] || { echo "SKIP: no Python with numpy (HONE_PYTHON names one)"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD/python" HONE_BUILD="$build"
export HONE_LIBRARY="$build/libhone.so" HONE_COMMAND="$build/hone"
# ONNX Runtime writes into HOME.
own=$(mktemp -d "${TMPDIR:-/tmp}/python-XXXXXX")
trap 'rm -rf "$own"' EXIT
export HOME="$own" XDG_CACHE_HOME="$own"
if "$python" -c 'import pytest' 2>/dev/null; then
  "$python" -m pytest -q -p no:cacheprovider tests/python
else
  "$python" -m unittest discover -s tests/python -t tests/python
fi
