#!/bin/sh
# usage: fp8.sh HONE   --precision fp8 on the (emulated) GPU: products of e4m3 where it is allowed, verified against their own bound, and
# refused in words where it is not: at level 2, on the CPU, and by chips that have no e4m3.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
"$1" zoo mobilenetv2 --width 0.5 --size 32 -o "$temp/m.onnx" >/dev/null
fp8() { command=$1; shift; "$hone" "$command" "$temp/m.onnx" --precision fp8 "$@"; }
hone=$1
HONE_TACTICS=-cudnn*,-conv_mma*,-conv_few*,-conv_chain*,-conv_simt*,-gemm_*,-cublaslt_conv*,-cublaslt_gemm*
export HONE_TACTICS
fp8 profile --device cuda --level 3 -n 1 --json >"$temp/profile"
n=$(grep -c '"cublaslt_fp8_conv1x1' "$temp/profile")
echo "$n steps in e4m3"
[ "$n" -ge 10 ]
unset HONE_TACTICS
fp8 verify --device cuda --level 3 -n 2 | tee "$temp/verify"
refused() { # exit code, words, arguments
  code=$1 words=$2; shift 2
  got=0
  fp8 run "$@" >"$temp/out" 2>&1 || got=$?
  cat "$temp/out"
  [ $got = "$code" ] && grep -q "$words" "$temp/out"
}
refused 2 'level 3' --device cuda
refused 2 'not available on device cpu' --level 3
HONE_FAKE_ARCH=80 refused 3 'compute capability 8.9' --device cuda --level 3
HONE_LIBCUBLASLT=none refused 3 'wants cuBLASLt' --device cuda --level 3
