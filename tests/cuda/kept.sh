#!/bin/sh
# usage: kept.sh HONE   what cuDNN builds is kept beside the kernels: a second process builds nothing, one that finds plans damaged or of
# another device builds again, and the answers stay the same.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export HONE_KERNEL_CACHE="$temp/kernels" HONE_TACTICS='-conv_*'
"$1" zoo mobilenetv2 --width 0.1 --size 32 -o "$temp/m.onnx" >/dev/null
run() { # HONE FOLDER: and how many plans were built and read
  : >"$temp/log"
  HONE_FAKE_CUDNN_LOG="$temp/log" "$1" run "$temp/m.onnx" --device cuda --precision fp16 --output-dir "$temp/$2" >"$temp/out" 2>"$temp/err" || {
    cat "$temp/err"
    exit 1
  }
  diff -r "$temp/first" "$temp/$2"
  built=$(grep -c built "$temp/log") || true
  read=$(grep -c read "$temp/log") || true
  echo "$2: $built plans built, $read read"
}
plans() { grep -l "engine .* of graph" "$temp"/kernels/*.cubin; }
run "$1" first
all=$(plans | wc -l)
[ "$all" -gt 3 ] && [ "$built" -ge "$all" ] && [ "$read" = 0 ] || exit 1
[ "$(grep -l "refused: cuDNN: " "$temp"/kernels/*.cubin | wc -l)" -gt 3 ] || exit 1
run "$1" second
[ "$built" = 0 ] && [ "$read" = "$all" ] || exit 1
HONE_FAKE_CUDNN_FOREIGN=1 run "$1" foreign
[ "$built" = "$all" ] || exit 1
for f in $(plans); do printf 'x' | dd of="$f" bs=1 seek=60 conv=notrunc 2>/dev/null; done
run "$1" damaged
[ "$built" = "$all" ] || exit 1
grep -q "is damaged: compiled again" "$temp/err"
