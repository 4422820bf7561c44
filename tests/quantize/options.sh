#!/bin/sh
# hone quantize: options that mean nothing are refused by name, what cannot be written is named before any work is
# done, names in tables, and what is quantised already. Usage: options.sh HONE
set -eu
hone=$1
dir=$(mktemp -d "${TMPDIR:-/tmp}/options-XXXXXX")
trap 'rm -rf "$dir"' EXIT
bad=0
wrong() { echo "$*"; bad=1; }
# expect CODE WORDS ARGUMENTS...: the code, and the words somewhere in what is said.
expect() {
  want=$1 words=$2
  shift 2
  code=0
  "$hone" quantize "$@" -t 1 >"$dir/said" 2>&1 || code=$?
  [ "$code" = "$want" ] || { wrong "$*: exit $code, not $want"; cat "$dir/said"; }
  grep -q -- "$words" "$dir/said" || { wrong "$*: does not say '$words'"; cat "$dir/said"; }
}
"$hone" zoo mobilenetv2 --width 0.25 --size 32 -o "$dir/m.onnx" >/dev/null
m=$dir/m.onnx q=$dir/q.onnx
# 16 bits: nothing of how 8 bits are made.
for option in "--method minmax" "--percentile 99" --equalize --bias-correction "--ranges $dir/r.json" --again "--target ort" \
  --symmetric --asymmetric "--labels $dir" "--data $dir" --untimed "--max-seconds 9" "--boxes nms" "-n 4" "--seed 3" \
  "--mean 1" --bgr; do
  name=${option%% *}
  [ "$name" != -n ] || name=--samples
  # shellcheck disable=SC2086
  expect 2 "$name" "$m" -o "$q" --to fp16 $option
done
expect 2 'with --io nothing is checked' "$m" -o "$q" --to bf16 --io --calib random
# 8 bits: nothing of 16, of a budget that is not asked for, of another method.
expect 2 '--io is for --to fp16' "$m" -o "$q" --calib random --io
expect 2 '--percentile is for --method percentile' "$m" -o "$q" --calib random --percentile 99
expect 2 '--max-seconds is for --max-drop' "$m" -o "$q" --calib random --max-seconds 3
expect 2 '--nms-iou is for --max-drop with --metric map' "$m" -o "$q" --calib random --max-drop 1 --metric sqnr --nms-iou 0.5
expect 2 'samples, and none are given' "$m" -o "$q" --ranges "$dir/r.json" -n 3
[ ! -e "$q" ] || wrong "written with options that mean nothing"
# What goes together does.
expect 0 'written to' "$m" -o "$q" --calib random -n 2 --method percentile --percentile 99.9 --seed 2
expect 0 'written to' "$m" -o "$dir/h.onnx" --to bf16 --calib random -n 1 --seed 3
expect 0 'written to' "$m" -o "$dir/h.onnx" --to fp16 --io --skip Conv
# A folder that is not there is said of the output, before the model is read or anything is run.
expect 6 "no/q.onnx: cannot write" "$dir/none.onnx" -o "$dir/no/q.onnx" --calib random
grep -q 'the folder does not exist' "$dir/said" || wrong "no word of the folder"
! grep -q ranges "$dir/said" || wrong "the ranges are blamed"
expect 6 "no/r.json" "$m" -o "$q" --calib random --ranges "$dir/no/r.json"
expect 6 "no/page.html" "$m" -o "$q" --calib random --html "$dir/no/page.html"
expect 6 "$dir: cannot write" "$m" -o "$dir" --calib random
expect 6 "no/q.onnx: cannot write" "$m" -o "$dir/no/q.onnx" --calib random --max-drop 1 --metric sqnr
# Quantised already: bad input.
for target in hone tensorrt; do
  "$hone" quantize "$m" -o "$dir/$target.onnx" --calib random -n 2 --target $target -t 1 >/dev/null 2>&1
  expect 3 'already quantised' "$dir/$target.onnx" -o "$dir/twice.onnx" --calib random -n 2
  grep -q 'give the float model' "$dir/said" || wrong "$target: no word of the float model"
  expect 3 'already quantised' "$dir/$target.onnx" -o "$dir/twice.onnx" --calib random --max-drop 1 --metric sqnr
done
[ ! -e "$dir/twice.onnx" ] || wrong "quantised twice"
# TensorRT adds within the convolution before a sum: the sum's row in the table is of its other side.
"$hone" zoo resnet50 --width 0.25 --size 32 -o "$dir/sums.onnx" >/dev/null
expect 0 '^Add_' "$dir/sums.onnx" -o "$dir/sums8.onnx" --calib random -n 2 --target tensorrt
! grep -q '^Add_.* 0 \.\. 0 ' "$dir/said" || wrong "sums without a range"
# A result that is far from the float model is said to be, with what to do; one that is near is not.
expect 0 'far from the float model.*SQNR.*--layers.*--max-drop' "$m" -o "$q" --calib random -n 2 --again --method percentile --percentile 55
expect 0 'SQNR' "$m" -o "$q" --calib random -n 2 --again
! grep -q 'far from' "$dir/said" || wrong "a good result is called poor"
# The page has the layers, warnings and outputs, and small files have a size.
rm -f "$q"
expect 0 'KiB, was' "$m" -o "$q" --calib random -n 2 --html "$dir/page.html"
for words in 'Quantised model' 'random inputs' 'Conv' 'SQNR' '</html>'; do
  grep -q -- "$words" "$dir/page.html" || wrong "the page lacks '$words'"
done
command -v jq >/dev/null || { echo "no jq: the JSON was not looked at"; exit $bad; }
"$hone" quantize "$m" -o "$q" --calib random -n 8 --again --json -t 1 >"$dir/json" 2>/dev/null
jq -e '.coverage | .problems >= 1 and .ranges > 10 and .growth_each > 0 and .repeated == 0 and .brightness == null and
  .classes == null' "$dir/json" >/dev/null || wrong "coverage: $(jq -c .coverage "$dir/json")"
[ "$bad" = 0 ] || exit 1
# MNIST's own files: a set that is fine has one quiet line, and one that is not a warning for each thing.
shared=${HONE_SHARED:-../shared}/cases
[ -d $shared/labelled/mnist ] || { echo "SKIP: $shared is not there"; exit 77; }
m=$shared/models/mnist-cntk.onnx
for set in $shared/labelled/mnist $shared/labelled/mnist/t10k-images-idx3-ubyte.gz; do
  expect 0 '^samples: 500, ranges grow by .* % with each at the end; .* of white; 10 classes, ' "$m" -o "$q" --calib "$set" -n 500
  ! grep -q warning "$dir/said" || { wrong "$set: warned of"; cat "$dir/said"; }
done
expect 0 'warning: 16 samples are few' "$m" -o "$q" --calib $shared/labelled/mnist -n 16
grep -q "warning: 1 of 10 classes has no sample ('3')" "$dir/said" || wrong "no word of the class that is missing"
! grep -q '^samples:' "$dir/said" || wrong "a set that is not fine is called so"
exit $bad
