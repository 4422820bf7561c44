#!/bin/sh
# hone plan: the steps of a plan, the table of sizes, and what is wrong said once with its exit code.
set -eu
hone=$1
folder=${TMPDIR:-/tmp}
model=$folder/m.onnx
"$hone" zoo mobilenetv2 --size 32 --width 0.25 -o "$model" >"$folder/out"

# Prints the message of a command that must fail with this code.
fails() {
  code=$1
  shift
  status=0
  "$hone" plan "$@" >"$folder/out" 2>"$folder/err" || status=$?
  if [ "$status" -ne "$code" ] || [ -s "$folder/out" ] || [ "$(wc -l <"$folder/err")" -ne 1 ]; then
    echo "hone plan $*: exit code $status, expected $code and one line:"
    cat "$folder/out" "$folder/err"
    exit 1
  fi
  cat "$folder/err"
}

"$hone" plan "$model" -t 1 --json 2>"$folder/err" |
  jq -e '(.steps | length) > 10 and .memory.constants > 0 and .steps[0].predicted_us > 0' >"$folder/out"
"$hone" plan "$model" -t 1 --rows 3 2>"$folder/err" | grep -q '^... and '
"$hone" plan "$model" -t 1 --shapes --profile N=1:2:8 --json -n 1 | jq -e '
  [.plans[].size.N] == [1, 2, 4, 8] and .dimensions[0].padded and all(.plans[]; .measured_ms > 0)
  and ([.plans[] | select(.shared_bytes > 0)] | length) >= 2
  and .bytes < ([.plans[] | .own_bytes + .shared_bytes] | add)' >"$folder/out"
"$hone" plan "$model" -t 1 --shapes --profile N=2:3:12:4 --json |
  jq -e '[.plans[].size.N] == [2, 3, 4, 8, 12] and all(.plans[]; .measured_ms == null)' >"$folder/out"
"$hone" plan "$model" -t 1 --shapes --profile N=1:1:2 | grep -q 'padded to the next size (proved)'

fails 2 "$model" --shapes --profile N=0:1:2 | grep -q 'min 0'
fails 2 "$model" --shapes --profile N=-4:1:2 | grep -q 'min -4'
fails 2 "$model" --shapes --profile N=3:2:8 | grep -q 'has no sizes'
fails 2 "$model" --shapes --profile N=1:8 | grep -q 'MIN:OPT:MAX'
fails 2 "$model" --shapes --profile 1:2:3 | grep -q 'MIN:OPT:MAX'
fails 2 "$model" --shapes --profile N=1:2:x | grep -q 'MIN:OPT:MAX'
fails 2 "$model" --shapes --profile M=1:2:3 | grep -q "dimension named 'M'; expected N"
fails 2 "$model" --shapes --profile N=1:2:9000:1 | grep -q 'too many buckets'
fails 2 "$model" --profile N=1:2:3 | grep -q 'for --shapes'
fails 3 "$folder/none.onnx" --shapes | grep -q 'none.onnx'
