#!/bin/sh
# usage: precision.sh HONE   --precision auto on the (emulated) GPU: a budget of half of fp16's error leaves some steps narrow and some not,
# and keeps itself; a budget above it leaves all of them narrow.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
"$1" zoo mobilenetv2 --width 0.1 --size 32 -o "$temp/m.onnx" >/dev/null
# The search takes as long as the machine needs to compile the kernels of its plans.
choose() { "$1" bench "$temp/m.onnx" --device cuda --precision auto --budget "$2" -n 1 --max-seconds 500 --json >"$temp/out"; }
value() { sed -n "s/.*\"$1\": *\([^,}]*\).*/\1/p" "$temp/out" | head -1; }
choose "$1" 0.01
all=$(value error_bf16) steps=$(value candidates)
echo "all $steps steps in $(value narrow): error $all"
[ "$(value narrow)" = '"fp16"' ]
grep -q '"f32_nodes": *\[\]' "$temp/out"
budget=$(awk -v e="$all" 'BEGIN { print e / 2 }')
choose "$1" "$budget"
kept=$(sed -n '/"f32_nodes"/,/\]/p' "$temp/out" | grep -c '_') || true
echo "budget $budget: $kept steps stay f32, error $(value error)"
[ "$kept" -gt 0 ] && [ "$kept" -lt "$steps" ]
awk -v e="$(value error)" -v b="$budget" 'BEGIN { exit !(e > 0 && e <= b) }'
# A saved plan for the device gives its own answers back, and no other device takes it.
"$1" optimize "$temp/m.onnx" --device cuda --precision fp16 -o "$temp/m.hone" >/dev/null
"$1" verify "$temp/m.hone" --device cuda -n 1 | head -1
if "$1" run "$temp/m.hone" 2>"$temp/out"; then exit 1; fi
grep 'another processor' "$temp/out"
