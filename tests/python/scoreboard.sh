#!/bin/sh
# ONNX's own backend tests on the library of a build folder: tools/scoreboard.py. SKIP where no Python has onnx.
# usage: scoreboard.sh BUILD [OPTION...]
set -u
build=$1
shift
for python in "${HONE_PYTHON:-}" python3; do
  [ -n "$python" ] && "$python" -c 'import numpy, onnx.helper' 2>/dev/null && break
  python=
done
[ -n "$python" ] || { echo "SKIP: no Python with onnx (HONE_PYTHON names one)"; exit 77; }
root=$(cd "$(dirname "$0")/../.." && pwd)
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$root/python" HONE_LIBRARY="$build/libhone.so" exec "$python" "$root/tools/scoreboard.py" "$@"
