#!/bin/sh
# usage: kept.sh HONE   what cuDNN builds is kept beside the kernels: a second process reads it, one that finds it damaged or made by
# another builds again, and the answers stay the same.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export HONE_KERNEL_CACHE="$temp/kernels" HONE_TACTICS='-conv_*'
"$1" zoo mobilenetv2 --width 0.1 --size 32 -o "$temp/m.onnx" >/dev/null
run() { # HONE FOLDER
  "$1" run "$temp/m.onnx" --device cuda --precision fp16 --output-dir "$temp/$2" >"$temp/out" 2>"$temp/err" || { cat "$temp/err"; exit 1; }
}
run "$1" first
plans() { grep -l "configuration 0x" "$temp"/kernels/*.cubin | wc -l; }
refused() { grep -l "refused" "$temp"/kernels/*.cubin | wc -l; }
echo "$(plans) plans and $(refused) engines that do not build are kept"
[ "$(plans)" -gt 3 ] && [ "$(refused)" -gt 3 ] || exit 1
before=$(plans)
run "$1" second
diff -r "$temp/first" "$temp/second"
[ "$(plans)" = "$before" ] || exit 1
for f in $(grep -l "configuration 0x" "$temp"/kernels/*.cubin); do printf 'x' | dd of="$f" bs=1 seek=60 conv=notrunc 2>/dev/null; done
run "$1" third
diff -r "$temp/first" "$temp/third"
grep -q "is damaged: compiled again" "$temp/err"
