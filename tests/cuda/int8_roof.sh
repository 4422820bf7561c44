#!/bin/sh
# usage: int8_roof.sh HONE   The (emulated) GPU has a measured roof for products of codes of 8 bits, by a tactic on codes, and the integer
# steps of a quantised network stand against it.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
XDG_CACHE_HOME=$temp/cache
export XDG_CACHE_HOME
"$1" device --device cuda >"$temp/device"
grep -E '^int8 +matrix product +[0-9.]+ TOP/s +\(int8_matmul_' "$temp/device"
"$1" device --device cuda --json | jq -e '[.roofs[] | select(.name == "int8" and .unit == "GOP/s" and .value > 0)] | length == 1'
"$1" zoo mobilenetv2 --width 0.25 --size 32 -o "$temp/m.onnx" >/dev/null
"$1" quantize "$temp/m.onnx" --calib random -o "$temp/q.onnx" >/dev/null
"$1" profile "$temp/q.onnx" --device cuda -n 2 --json >"$temp/profile"
jq -e '[.roofs[] | select(.name == "int8" and .gflops > 0)] | length == 1' "$temp/profile"
# Integer products have a share of a compute roof, and what their codes mean is told.
jq -e '[.layers[] | select(.arithmetic == "int8")] | length > 0 and all(.compute_pct > 0 and .roof_pct > 0 and (.codes_out | test("scale")))' "$temp/profile"
