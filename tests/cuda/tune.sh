#!/bin/sh
# usage: tune.sh HONE   what hone tune measures on the (emulated) GPU is what plans made later take, and is not measured again. A kernel that
# fails is named, and what was measured before it is kept.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export HONE_TUNE_CACHE="$temp/tuned"
"$1" zoo mobilenetv2 --width 0.1 --size 32 -o "$temp/m.onnx" >/dev/null
# --check compares no whole plans: whether the tuned one is slower on this machine is another matter.
tune() {
  "$1" tune "$temp/m.onnx" --device cuda --precision fp16 --tune-seconds "${2:-1}" --check --json >"$temp/out" 2>/dev/null || [ $? = 1 ]
}
value() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$temp/out" | head -1; }
for budget in 1 4 16 64 256; do # seconds; how many a step's kernels take to be compiled depends on the machine
  tune "$1" "$budget"
  measured=$(value measured)
  [ "$measured" = 0 ] || break
done
"$1" plan "$temp/m.onnx" --device cuda --precision fp16 >"$temp/plan"
marked=$(grep -c ' \*$' "$temp/plan") || true
tune "$1"
echo "$measured measured, $marked steps of the plan by measurement, $(value known) known the second time"
[ "$measured" -gt 0 ] && [ "$marked" -ge "$measured" ] && [ "$(value known)" -ge "$measured" ] || exit 1

export HONE_TACTICS='-conv_mma_*,-conv_simt*' # few kernels a step, or the emulator takes long
# How many kernels a step takes depends on the machine: later and later ones fail, until some steps came before.
n=300
while :; do
  rm -f "$temp/tuned"
  if HONE_FAKE_FAIL=kernel:$n "$1" tune "$temp/m.onnx" --device cuda --precision fp16 --tune-seconds 300 >"$temp/out" 2>"$temp/err"; then
    echo "no kernel failed behind a step that was measured"; exit 1
  fi
  grep "step '.*' by .*: .*HONE_TACTICS=-" "$temp/err" || { cat "$temp/err"; exit 1; }
  tune "$1"
  [ "$(value known)" = 0 ] || break
  n=$((n * 6 / 5))
done
echo "$(value known) known after the failure of kernel $n"
