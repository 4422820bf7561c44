#!/bin/sh
# What make install gives, in an empty root, and the examples compiled and run against it: sh install.sh BUILD SOURCE
# plugins/package.sh does the same for headers and custom operators.
set -u
build=$1 source=$2 bad=0
work=$(mktemp -d "${TMPDIR:-/tmp}/install-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; bad=1; }
run() { "$@" >"$work/log" 2>&1 || { fail "$*"; cat "$work/log"; }; }
# DESTDIR is where packagers collect, PREFIX where the files will be: nothing may contain the first.
root=$work/root prefix=$work/root/opt/hone
run env DESTDIR="$root" cmake --install "$build" --prefix /opt/hone
{ printf '%s\n' "$root" /opt/hone; cat "$build/install_manifest.txt"; } >"$work/installed.txt" # as make install does
hone=$prefix/bin/hone
for file in bin/hone lib/libhone.so lib/libhone.so.0 lib/pkgconfig/hone.pc lib/cmake/hone/honeConfig.cmake include/hone/hone.h \
  share/man/man1/hone.1 share/man/man1/hone-bench.1 share/bash-completion/completions/hone share/zsh/site-functions/_hone \
  share/fish/vendor_completions.d/hone.fish; do
  [ -e "$prefix/$file" ] || fail "$file is not installed"
done
[ -z "$(find "$root" ! -type d ! -path "$prefix/*" | head -3)" ] || fail "files beside the prefix"
grep -rIl "$root" "$prefix" | grep . && fail "these name DESTDIR"
objdump -p "$prefix/lib/libhone.so" | grep -q 'SONAME  *libhone.so.0$' || fail "the library's name is not libhone.so.0"
# Exported are hone's own functions alone.
nm -D --defined-only "$prefix/lib/libhone.so" | awk '{ print $3 }' | grep -v '^hone_' | head -3 | grep . && fail "these symbols are no hone_"
"$hone" version | grep -q '^hone [0-9]' || fail "hone version"

cd "$work" || exit 1
run "$hone" zoo mobilenetv2 --width 0.25 --size 32 -b 1 -o small.onnx
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LD_LIBRARY_PATH="$prefix/lib"
if command -v pkg-config >/dev/null 2>&1; then
  [ "$(pkg-config --modversion hone)" = "$("$hone" version --json | sed -n 's/.*"version": "\(.*\)".*/\1/p')" ] || fail "pkg-config's version"
  # shellcheck disable=SC2046
  run "${CC:-cc}" -Wall -Wextra -Werror -std=c11 "$source/examples/c/classify.c" -o classify $(pkg-config --cflags --libs hone)
else
  echo "SKIP: pkg-config is not installed"
fi
if command -v c++ >/dev/null 2>&1; then
  run cmake -S "$source/examples" -B examples -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror"
  run cmake --build examples
  run examples/parallel small.onnx 3
  grep -q '^3 threads, 20 runs each: the same answer$' log || { fail "parallel"; cat log; }
  examples/parallel none.onnx 2>log && fail "parallel without a model"
  grep -q '^parallel: .*none.onnx' log || { fail "parallel's error"; cat log; }
  [ -x classify ] || cp examples/classify .
else
  echo "SKIP: there is no C++ compiler"
fi
# What the example says is what the command says.
run ./classify small.onnx
[ "$(grep -cE '^ *[0-9]+  -?[0-9]' log)" = 5 ] || { fail "classify"; cat log; }
"$hone" run small.onnx --output-dir out >/dev/null || fail "hone run"
./classify none.onnx 2>log && fail "classify without a model"
[ "$(wc -l <log)" = 1 ] && grep -q '^classify: .*none.onnx' log || { fail "classify's error"; cat log; }

for python in "${HONE_PYTHON:-}" python3; do
  [ -n "$python" ] && "$python" -c 'import sys, numpy; assert sys.version_info >= (3, 9)' 2>/dev/null && break
  python=
done
if [ -n "$python" ]; then
  export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$source/python" HONE_LIBRARY="$prefix/lib/libhone.so.0" HONE_COMMAND="$hone"
  run "$python" "$source/examples/python/check.py" small.onnx
  grep -q '^verify: same$' log || { fail "check.py"; cat log; }
else
  echo "SKIP: no Python with numpy (HONE_PYTHON names one)"
fi

# Away again: a file that is not hone's stays, with its folder.
cd "$source" || exit 1
touch "$prefix/share/man/man1/other.1"
make -s uninstall BUILD="$work" DESTDIR=/elsewhere >"$work/log" 2>&1 && fail "make uninstall from another DESTDIR"
run make -s uninstall BUILD="$work"
[ "$(find "$prefix" ! -type d)" = "$prefix/share/man/man1/other.1" ] || fail "make uninstall leaves $(find "$prefix" ! -type d | head -3)"
[ -e "$prefix/include/hone" ] || [ -e "$prefix/lib/cmake/hone" ] && fail "make uninstall leaves folders of hone's own"
make -s uninstall BUILD="$work" DESTDIR="$root" >"$work/log" 2>&1 && fail "make uninstall, and nothing is installed"
make -s help BUILD="$work" >"$work/log" 2>&1 && grep -q '^make uninstall ' "$work/log" || fail "make help"
exit $bad
