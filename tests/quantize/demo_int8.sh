#!/bin/sh
# hone demo int8 on trained classifiers: Top-1 as hone eval measures it, 8 bits close to it, and what goes wrong.
# usage: demo_int8.sh HONE
set -eu
hone=$1
bad=0
fail() { echo "$*"; bad=1; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/hone-demo.XXXXXX")
trap 'rm -rf "$dir"' EXIT

for wrong in "int8 --data $dir" "mobilenetv2 m.onnx" "mobilenetv2 --calib random" "int8 m.onnx n.onnx"; do
  code=0
  # shellcheck disable=SC2086
  "$hone" demo $wrong >/dev/null 2>&1 || code=$?
  [ "$code" = 2 ] || fail "hone demo $wrong: exit $code, not 2"
done
for wrong in "$dir/none.onnx" "zoo.onnx --calib $dir"; do
  code=0
  # shellcheck disable=SC2086
  "$hone" demo int8 $wrong >/dev/null 2>&1 || code=$?
  [ "$code" = 3 ] || fail "hone demo int8 $wrong: exit $code, not 3"
done
[ -z "$(ls "$dir")" ] || fail "something was left behind"

cases=${HONE_SHARED:-../shared}/cases
if [ ! -d $cases/labelled/mnist ]; then
  [ $bad = 0 ] || exit 1
  echo SKIP: no $cases/labelled
  exit 77
fi
TMPDIR=$dir "$hone" demo int8 $cases/models/mnist-cntk.onnx --data $cases/labelled/mnist -n 2 --json >"$dir/demo.json"
[ "$(ls "$dir")" = demo.json ] || fail "something was left behind: $(ls "$dir")"
"$hone" eval $cases/models/mnist-cntk.onnx --data $cases/labelled/mnist --json >"$dir/eval.json"
right() { grep -o '"right": [0-9]*' "$1" | head -n "${2:-1}" | tail -n 1 | tr -dc 0-9; }
[ "$(right "$dir/demo.json")" = "$(right "$dir/eval.json")" ] || fail "FP32 is not what hone eval says"
for row in 2 3 4; do
  [ "$(right "$dir/demo.json" $row)" -gt 9850 ] || fail "row $row: $(right "$dir/demo.json" $row) right of 10000"
done
# Mixed against INT8, sample by sample; where it is worse, that is said.
only() { grep -o "\"only_$1\": [0-9]*" "$dir/demo.json" | sed 's/.* //'; }
more() { echo $(($(right "$dir/demo.json" 4) - $(right "$dir/demo.json" 3))); }
compared() {
  [ $(($(only mixed) - $(only int8))) = "$(more)" ] || fail "$1: mixed against INT8: $(only int8) and $(only mixed)"
}
compared MNIST
set -- $cases/models/resnet20_cifar10.onnx --data $cases/labelled/cifar10_150 -n 2
"$hone" demo int8 "$@" --json >"$dir/demo.json"
"$hone" demo int8 "$@" >"$dir/demo.txt"
compared CIFAR
less=$((-$(more)))
if [ $less -gt 0 ]; then
  grep -q "right $less times* less often than INT8" "$dir/demo.txt" || fail "mixed is worse without a word"
else
  ! grep -q 'less often than INT8' "$dir/demo.txt" || fail "mixed is called worse"
fi
exit $bad
