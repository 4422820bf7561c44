#!/bin/sh
# How inputs arrive: --input-type, --input-layout, --pinned and --pageable do what they say on the processor, and are refused where they mean
# nothing.
# usage: arriving.sh HONE
set -eu
hone=$1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
bad=0
fail() { echo "$*"; bad=1; }
model=$temp/m.onnx
"$hone" zoo mobilenetv2 --size 32 --width 0.35 -o "$model" >/dev/null

# Bytes and halves: what is planned is what the references say, and the input is what arrives.
for options in "--input-type u8" "--input-type u8 --input-layout nhwc" "--input-type u8 --scale 1/127.5 --mean 1 --bgr" "--input-layout nhwc" \
  "--input-type f16" "--input-type bf16" "--input-type f32"; do
  # shellcheck disable=SC2086 # words
  "$hone" verify "$model" $options >"$temp/out" 2>&1 || { fail "verify $options"; cat "$temp/out"; }
done
"$hone" run "$model" --input-type u8 --input-layout nhwc 2>&1 | grep -q 'u8\[1x32x32x3\]' || fail "the input is no u8[1x32x32x3]"
"$hone" bench "$model" -n 3 -w 0 --pinned --input-type f16 >/dev/null 2>&1 || fail "bench --pinned"
for memory in pinned pageable; do
  "$hone" bench "$model" -b 2 --streams 2 --$memory --min-duration 0s --min-queries 4 --qps 10 --json 2>/dev/null |
    grep -q '"rows": *1[,}]' || fail "--streams 2 --$memory: a sample is no whole batch"
done

refused() { # words, options...: exit 2, and these words
  words=$1 code=0
  shift
  "$hone" "$@" >"$temp/out" 2>&1 || code=$?
  [ "$code" = 2 ] || fail "$*: exit $code, not 2"
  grep -q -- "$words" "$temp/out" || { fail "$*: does not say '$words'"; cat "$temp/out"; }
}
refused "--input-type wants" bench "$model" --input-type u7
refused "--input-layout wants" bench "$model" --input-layout hwc
refused "--std wants" bench "$model" --input-type u8 --std 0
refused "exclude each other" bench "$model" --streams 2 --pinned --pageable
refused "belongs to" bench "$model" --pageable
refused "no input for pictures" bench zoo:many_inputs --input-type u8
"$hone" optimize "$model" -o "$temp/m.hone" >/dev/null 2>&1
refused "cannot change a saved plan" run "$temp/m.hone" --input-type u8
exit $bad
