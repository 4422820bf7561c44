#!/bin/sh
# What `make test` cuts down, whole, on the emulated GPU (docs/develop/extending.md): every case, size and program through every tactic of ours in
# every storage type, layout, width of the output and epilogue, and every recorded device text through the real NVRTC. It takes long
# when nothing is compiled yet (.cache/emulated).
# usage: tools/test_emulated.sh [BUILD]   JOBS=N processes at once (the processors). Ends with "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:-build} jobs=${JOBS:-$(nproc)}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export HONE_BUILD="$build"
passed=0 failed=0
on_gpu() { sh tests/cuda/emulated.sh "$@"; }
count() { # name, status, log
  if [ "$2" = 0 ]; then passed=$((passed + 1)); echo "ok      $1: $(tail -1 "$3")"
  else failed=$((failed + 1)); echo "FAILED  $1"; grep -E 'FAIL|ERROR|emulated GPU' "$3" | head -20; fi
}
spread() { # name, command...: with --shard I/jobs, all at once
  name=$1 share=0
  shift
  while [ $share -lt "$jobs" ]; do
    { on_gpu "$@" --shard $share/"$jobs" >"$temp/$share" 2>&1; echo $? >"$temp/$share.status"; } &
    share=$((share + 1))
  done
  wait
  share=0
  while [ $share -lt "$jobs" ]; do
    count "$name $share/$jobs" "$(cat "$temp/$share.status")" "$temp/$share"
    share=$((share + 1))
  done
}
one() { # name, command...
  name=$1
  shift
  "$@" >"$temp/one" 2>&1
  count "$name" $? "$temp/one"
}
cases="tests/tactics/cases tests/cuda/cases.txt"
# shellcheck disable=SC2086 # two words
spread check_tactics "$build/check_tactics" $cases --device cuda
# Where tactics are named, products get all epilogues; one tile of each kind of text.
# shellcheck disable=SC2086
spread "check_tactics, all epilogues" "$build/check_tactics" $cases --device cuda --tactic \
  'conv_mma_64x64,conv_mma_16x64_k4,conv_simt_64x64,conv_image,conv_direct*,conv_transpose*,gemm_mma_64x64,gemm_mma_16x64_k4,gemm_simt_64x64,matmul_mma_64x64,matmul_mma_16x64_k4,matmul_simt_64x64'
spread check_kernels "$build/check_kernels" --device cuda --tactic '-cu*'
one check_codes on_gpu "$build/check_codes"
one check_pointwise on_gpu "$build/check_pointwise" --device cuda
for arch in 80 90; do
  export HONE_FAKE_ARCH=$arch HONE_FAKE_RECORD="$temp/texts/$arch"
  one "record_texts $arch" on_gpu sh tests/cuda/record_texts.sh "$build" "$temp/texts/$arch" --all
  unset HONE_FAKE_ARCH HONE_FAKE_RECORD
  target=sm_$arch
  [ $arch = 90 ] && target=sm_90a
  one "check_texts $target" "$build/check_texts" "$temp/texts/$arch" $target --most 1000
done
printf '\n%d passed, %d failed\n' $passed $failed
[ $failed = 0 ]
