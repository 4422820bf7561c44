#!/bin/sh
# What is said of a quantised network with badly placed Q/DQ, from a record of it, in both languages; and of two models that are run in turn.
# usage: int8.sh HONE
set -eu
hone=$1
bad=0
export LC_ALL=C.UTF-8
fail() { echo "$*"; bad=1; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/hone-int8.XXXXXX")
trap 'rm -rf "$dir"' EXIT

for lang in en zh; do
  # The first finding, up to the blank line behind it.
  "$hone" diagnose tests/rules/int8.facts.json --lang $lang | awk '/^(Findings|发现) / {found = 1} found && /^  1\. / {on = 1} on && /^$/ {exit} on' >"$dir/$lang.txt"
  diff -u tests/golden/int8.$lang.txt "$dir/$lang.txt" || fail "$lang: not the text of tests/golden/int8.$lang.txt"
done

"$hone" zoo mobilenetv2 --width 0.2 --size 32 -b 1 -o "$dir/m.onnx" >/dev/null
"$hone" quantize "$dir/m.onnx" --calib random -n 4 -o "$dir/q.onnx" >/dev/null 2>&1
"$hone" quantize "$dir/m.onnx" --calib random -n 4 --skip Add -o "$dir/islands.onnx" >/dev/null 2>&1
all="--threshold min_gain=0 --threshold quant_extra=0 --threshold merge_share=1000"
# shellcheck disable=SC2086
"$hone" profile "$dir/q.onnx" --float "$dir/m.onnx" -n 5 $all --json >"$dir/q.json"
grep -q '"gain over float"' "$dir/q.json" || fail "--float MODEL: no gain over float"
grep -q '"name":"conversions"' "$dir/q.json" || fail "no conversions in a quantised model"
# shellcheck disable=SC2086
"$hone" profile "$dir/islands.onnx" -n 5 $all --json >"$dir/islands.json"
grep -q '"name":"islands"' "$dir/islands.json" || fail "--skip Add: no islands"
# A record in its place, whoever wrote it.
"$hone" profile "$dir/m.onnx" -n 5 -o "$dir/m.json" >/dev/null
"$hone" profile "$dir/q.onnx" --float "$dir/m.json" -n 5 $all --json | grep -q '"gain over float"' || fail "--float RECORD: no gain over float"
for wrong in "--filter Conv" "--counters" "--float $dir/m.onnx"; do
  code=0
  # shellcheck disable=SC2086
  "$hone" profile "$dir/q.onnx" --float "$dir/m.onnx" $wrong >/dev/null 2>&1 || code=$?
  [ "$code" = 2 ] || fail "--float MODEL $wrong: exit $code, not 2"
done
exit $bad
