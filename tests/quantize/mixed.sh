#!/bin/sh
# hone quantize --max-drop: exit codes, what is written and what is not, and the JSON. Usage: mixed.sh HONE
set -eu
hone=$1
dir=$(mktemp -d "${TMPDIR:-/tmp}/mixed-XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tmp"
TMPDIR=$dir/tmp
export TMPDIR
bad=0
wrong() { echo "$*"; bad=1; }
# expect CODE WORDS... -- ARGUMENTS...: the code, and the words somewhere in what is said.
expect() {
  want=$1 words=$2
  shift 2
  code=0
  "$hone" quantize "$@" -t 1 >"$dir/said" 2>&1 || code=$?
  [ "$code" = "$want" ] || { wrong "$*: exit $code, not $want"; cat "$dir/said"; }
  grep -q -- "$words" "$dir/said" || { wrong "$*: does not say '$words'"; cat "$dir/said"; }
  [ -z "$(ls "$TMPDIR")" ] || wrong "$*: left $(ls "$TMPDIR")"
}
"$hone" zoo mobilenetv2 --width 0.25 --size 32 -o "$dir/m.onnx" >/dev/null
m=$dir/m.onnx q=$dir/q.onnx
# Half of an option, and options that mean nothing.
expect 2 'wants a metric' "$m" -o "$q" --calib random --max-drop 0.1
expect 2 'wants a budget' "$m" -o "$q" --calib random --metric sqnr
expect 2 'knows no' "$m" -o "$q" --calib random --max-drop 0.1 --metric top2
expect 2 '0.001 is 30 dB' "$m" -o "$q" --calib random --max-drop 30 --metric sqnr
expect 2 'labelled data' "$m" -o "$q" --calib random --max-drop 0.1 --metric top1
# A share, not points: who writes 0.5 for half a point is told what it allows.
expect 2 'allows top1 to lose 50 points of 100; half a point is 0.005' "$m" -o "$q" --calib random --max-drop 0.5 --metric top1
expect 2 'chooses the types itself' "$m" -o "$q" --calib random --max-drop 0.1 --metric sqnr --to fp16
expect 2 'untimed' "$m" -o "$q" --calib random --max-drop 0.1 --metric sqnr --target ort
expect 2 'for --max-drop' "$m" -o "$q" --calib random --untimed
expect 3 'too few samples' "$m" -o "$q" --calib random -n 4 --max-drop 0.1 --metric sqnr --untimed
# Nothing is allowed: nothing is written.
expect 1 'nothing written' "$m" -o "$q" --calib random -n 8 --max-drop 0 --metric cosine --untimed
[ ! -e "$q" ] || wrong "written where nothing was found"
expect 0 'written to' "$m" -o "$q" --calib random -n 16 --max-drop 0.05 --metric sqnr --untimed
[ -s "$q" ] || wrong "nothing written"
"$hone" verify "$q" -t 1 >"$dir/said" 2>&1 || { wrong "the result is no good"; cat "$dir/said"; }
command -v jq >/dev/null || { echo "no jq: the JSON was not looked at"; exit $bad; }
# With time: either it is faster beyond doubt and there, or it is not there.
rm -f "$q"
code=0
"$hone" quantize "$m" -o "$q" --calib random -n 16 --max-drop 0.05 --metric cosine --json -t 1 >"$dir/json" 2>"$dir/said" ||
  code=$?
if [ -e "$q" ]; then
  jq -e '.verdict == "met" and .time.high < 0 and .held_out.drop <= .max_drop' "$dir/json" >/dev/null && [ "$code" = 0 ] ||
    wrong "written, exit $code: $(jq -c '[.verdict, .time, .held_out]' "$dir/json")"
else
  jq -e '.verdict != "met" and .output == null' "$dir/json" >/dev/null && [ "$code" = 1 ] || wrong "exit $code"
fi
jq -e '[.layers[] | select(.unit >= 0)] | length > 30 and all(.type and .reason and .why and .ms.f32 >= 0)' "$dir/json" \
  >/dev/null || wrong "layers without type, reason or time"
[ "$bad" = 0 ] || exit 1
# On labelled data: what is held out is every second sample, and hone eval counts the same.
shared=${HONE_SHARED:-../shared}/cases
[ -d $shared/labelled/cifar10_150 ] || { echo "SKIP: $shared is not there"; exit 77; }
m=$shared/models/resnet20_cifar10.onnx data=$shared/labelled/cifar10_150
for budget in 0 0.02 1; do
  rm -f "$q"
  code=0
  "$hone" quantize "$m" -o "$q" --max-drop $budget --metric top1 --labels "$data" --untimed --json -t 1 \
    >"$dir/json" 2>"$dir/said" || code=$?
  [ "$code" -le 1 ] || { wrong "budget $budget: exit $code"; cat "$dir/said"; continue; }
  if [ "$code" = 0 ]; then
    "$hone" eval "$m" --data "$data" --compare "$q" --json -t 1 >"$dir/eval" 2>/dev/null || true
    # 75 samples in each half
    jq -e --slurpfile e "$dir/eval" '(.held_out.drop <= .max_drop + 1e-9) and (.chosen.drop <= .max_drop + 1e-9) and
      ((75 * (.chosen.before + .held_out.before) - $e[0].right | fabs) < 1e-6) and
      ((75 * (.chosen.after + .held_out.after) - $e[0].compared_with.right | fabs) < 1e-6)' "$dir/json" >/dev/null ||
      wrong "budget $budget: $(jq -c '[.chosen, .held_out]' "$dir/json"), eval $(jq -c '[.right, .compared_with.right]' "$dir/eval")"
  else
    [ ! -e "$q" ] || wrong "budget $budget: written all the same"
  fi
done
[ "$code" = 0 ] || wrong "a budget of everything was not met"
exit $bad
