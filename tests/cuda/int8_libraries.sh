#!/bin/sh
# usage: int8_libraries.sh HONE   a quantised network on the (emulated) GPU: cuDNN and cuBLASLt do its products where hone's own tiles are
# left out, and where a library takes no integers none of its tactics is offered, with the library's reason.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
hone=$1
"$hone" zoo resnet50 --width 0.125 --size 32 -o "$temp/m.onnx" >/dev/null
"$hone" quantize "$temp/m.onnx" -o "$temp/q.onnx" --calib random -n 1 >/dev/null
# Steps whose own tactic begins so; what they might have had instead stands in the same line.
steps() { grep -c "\"tactic\": *\"$1[a-z0-9_]*\", *\"epilogue\"" "$temp/out" || true; }
profile() { "$hone" profile "$temp/q.onnx" --device cuda -n 1 --json >"$temp/out"; }
HONE_TACTICS=-int8_*,-codes_image* profile
for library in cudnn cublaslt; do
  n=$(steps ${library}_int8)
  echo "$n steps by $library"
  [ "$n" -ge 3 ]
done
HONE_FAKE_NO_INT8=1 profile
[ "$(steps 'cu[a-z]*_int8')" = 0 ] && [ "$(steps int8_conv)" -gt 10 ]
grep -q 'no engine builds for integers' "$temp/out"
HONE_FAKE_NO_INT8=1 HONE_TACTICS=-int8_*,-codes_image* profile
[ "$(steps 'cu[a-z]*_int8')" = 0 ]
echo "without integers the libraries offer nothing"
