#!/bin/sh
# usage: saved_slices.sh HONE   a saved plan that takes its batch in slices takes the whole batch from files, and gives what the model gives.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
"$1" zoo mobilenetv2 --width 0.1 --size 32 -o "$temp/m.onnx" >/dev/null
"$1" optimize "$temp/m.onnx" -o "$temp/p.hone" -b 4 -t 2 --slices 2 >/dev/null 2>&1
"$1" plan "$temp/p.hone" 2>/dev/null | grep -q "^slices *2 of the batch"
# The header of a .npy file of 4x3x32x32 numbers, and the numbers.
{
  printf '\223NUMPY\001\000\166\000'
  printf "%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3, 32, 32), }"
  i=0
  while [ $i -lt 12 ]; do
    head -c 4096 "$temp/m.onnx" | tr '\200-\377' '\000-\177' | tr '\100-\177' '\076' | head -c 4096
    i=$((i + 1))
  done
} >"$temp/x.npy"
"$1" run "$temp/m.onnx" -b 4 -t 2 --slices 2 -i "input=$temp/x.npy" --output-dir "$temp/whole" >"$temp/out" 2>&1 || { cat "$temp/out"; exit 1; }
"$1" run "$temp/p.hone" -i "input=$temp/x.npy" --output-dir "$temp/saved" >"$temp/out" 2>&1 || { cat "$temp/out"; exit 1; }
ls "$temp/saved"
cmp "$temp/whole/output.npy" "$temp/saved/output.npy"
