#!/bin/sh
# usage: faults.sh BUILD   Every function of the driver and of NVRTC that hone calls fails once, early and late, and kernels do: `hone bench` then
# ends by itself, either well (where hone could do without) or with one line on standard error and exit code 4 or 6.
set -u
build=$1
here=$(cd "$(dirname "$0")" && pwd)
source=$here/../../src/backends/cuda/driver
export HONE_FAKE_QUIET=1 HONE_BUILD=$build # the fakes of this build
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
runs=0 failures=0 bad=0
nm -D --defined-only "$build/tests/libfakecuda.so" >"$temp/symbols"

try() { # failure
  HONE_FAKE_FAIL=$1 timeout -k 2 120 sh "$here/emulated.sh" "$build/hone" bench -n 2 -w 1 zoo:many_inputs --device cuda >"$temp/out" 2>"$temp/err" </dev/null
  status=$?
  runs=$((runs + 1))
  errors=$(grep -c '^hone: error: ' "$temp/err")
  [ $status = 0 ] && [ "$errors" = 0 ] && return
  failures=$((failures + 1))
  { [ $status = 4 ] || [ $status = 6 ]; } && [ "$errors" = 1 ] && return
  bad=$((bad + 1))
  echo "FAILED $1: exit code $status, $errors errors"
  tail -3 "$temp/err"
}

names=$(sed -n 's/^ *X(\(cu[A-Za-z]*\|nvrtc[A-Za-z]*\)).*/\1/p' "$source/dl_cuda.h" "$source/dl_nvrtc.h")
for name in $names kernel; do
  symbol=$name
  grep -q " ${name}_v2$" "$temp/symbols" && symbol=${name}_v2
  for at in 1 9; do
    try "$symbol:$at"
  done
done
echo "$runs runs, $failures with an error, $bad wrong"
[ $bad = 0 ] && [ $failures -ge 25 ]
