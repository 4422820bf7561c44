#!/bin/sh
# Speed on a machine with a GPU, in under 10 minutes, as the Markdown tables of docs/log/perf.md: networks (with all tactics, and with hone's
# own kernels alone), the demos, and PyTorch beside them.
# usage: tools/bench_gpu.sh [FOLDER]   FOLDER: a build folder or a portable folder; the script's own where it lies beside `hone`.
# Where python3 has torch: bench/peers/torch_gpu.py (torch.compile) on TORCH="bert_base:1 ...", and with ANCHORS=FOLDER, a folder of
# gpu_bench.py and gpu_cudnn_fused.py, these too. PARTS="networks own endtoend demos peers", ROWS="resnet50:fp16:1 ..." and OWN="..." narrow a look. Prints one SKIP line without a GPU; ends with "N passed, N failed".
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -gt 0 ]; then bin=$(cd "$1" && pwd); elif [ -x "$here/hone" ]; then bin=$here; else bin=$here/../build; fi
hone=$bin/hone
root=$here
[ -f "$root/bench/peers/torch_gpu.py" ] || root=$(cd "$here/.." && pwd)
parts=${PARTS:-networks own endtoend demos peers}
rows=${ROWS:-resnet50:fp16:1 resnet50:fp16:32 resnet50:fp16:256 mobilenetv2:fp16:1 mobilenetv2:fp16:256 yolov3:fp16:1 yolov3:fp16:16 bert_base:fp16:1 bert_base:fp16:32 resnet50:f32:1 resnet50:f32:32 resnet50:tf32:32 mobilenetv2:f32:1 mobilenetv2:f32:256 resnet50:int8:1 resnet50:int8:32 resnet50:int8:256 mobilenetv2:int8:1 mobilenetv2:int8:32 yolov3:int8:32 bert_base:int8:32}
own=${OWN:-resnet50:fp16:1 resnet50:fp16:32 resnet50:fp16:256 mobilenetv2:fp16:1 mobilenetv2:fp16:256 yolov3:fp16:1 yolov3:fp16:16 bert_base:fp16:1 bert_base:fp16:32}
torch=${TORCH:-bert_base:1 bert_base:32 resnet50:1 resnet50:32 mobilenetv2:256}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
start=$(date +%s)
limit=${SECONDS_MAX:-560}
passed=0 failed=0
wants() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }
left() { echo $((limit - ($(date +%s) - start))); }
count() { if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }
value() { # file, key: the first number of that name in hone's JSON
  awk -v k="\"$2\":" '{ i = index($0, k); if (i) { v = substr($0, i + length(k)); sub(/[,}].*/, "", v); gsub(/[ \t]/, "", v); print v; exit } }' "$1"
}

"$hone" run zoo:many_inputs --device cuda >"$temp/out" 2>&1
if [ $? = 4 ]; then echo "SKIP: $(head -1 "$temp/out")"; exit 0; fi
echo "Measured on $(date -u +%Y-%m-%d), hone $("$hone" version | head -1)"
"$hone" device --device cuda 2>&1
# The network's model and precision as hone's arguments; int8: a file that `hone quantize` writes, once, and fp16 for what stays in floats.
model_of() { # network, precision
  if [ "$2" != int8 ]; then echo "zoo:$1 --precision $2"; return; fi
  [ -f "$temp/$1.onnx" ] || "$hone" quantize "zoo:$1" -o "$temp/$1.onnx" --calib random -n 1 >/dev/null 2>"$temp/err"
  echo "$temp/$1.onnx --precision fp16"
}
networks() { # rows...: a table
  printf '\n| network | precision | batch | device ms | end to end ms | h2d ms | d2h ms | img/s |\n|---|---|---|---|---|---|---|---|\n'
  for row in "$@"; do
    model=${row%%:*} rest=${row#*:}
    precision=${rest%%:*} batch=${rest#*:}
    seconds=$(left)
    [ "$seconds" -lt 5 ] && { echo "no time for $row"; continue; }
    # shellcheck disable=SC2046 # words
    timeout -k 5 "$([ "$seconds" -lt 60 ] && echo "$seconds" || echo 60)" "$hone" bench $(model_of "$model" "$precision") --batch "$batch" --device cuda --json >"$temp/bench" 2>"$temp/err"
    status=$?
    count $status
    if [ $status != 0 ]; then echo "| $model | $precision | $batch | failed: $(tail -1 "$temp/err" | cut -c1-100) |"; continue; fi
    printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "$model" "$precision" "$batch" "$(value "$temp/bench" device_ms)" "$(value "$temp/bench" median)" \
      "$(value "$temp/bench" h2d_ms)" "$(value "$temp/bench" d2h_ms)" "$(value "$temp/bench" device_fps)"
  done
}
# shellcheck disable=SC2086 # rows are words
if wants networks; then networks $rows; fi
# shellcheck disable=SC2086
if wants own; then
  printf "\nhone's own kernels alone (HONE_TACTICS=-cudnn*,-cublaslt*):\n"
  export HONE_TACTICS='-cudnn*,-cublaslt*'
  networks $own
  unset HONE_TACTICS
fi
# From the host's memory and back: batches by what three runs in flight answer, against the steps alone; single pictures by the latency of a
# run beyond its steps. ENDS="NETWORK:BATCH ...", KINDS="TYPE:MEMORY ...", STREAMS=N.
ends=${ENDS:-resnet50:256 mobilenetv2:256 yolov3:32 resnet50:1 mobilenetv2:1 yolov3:1}
kinds=${KINDS:-f32:pageable f32:pinned f16:pinned u8:pinned u8-nhwc:pinned}
bench() { # network, batch, options...: JSON in $temp/bench
  network=$1 batch=$2
  shift 2
  timeout -k 5 60 "$hone" bench "zoo:$network" --precision fp16 --batch "$batch" --device cuda --json "$@" >"$temp/bench" 2>"$temp/err"
}
kind_options() { # type:memory
  [ "${1#*:}" = pinned ] && printf -- '--pinned '
  case $1 in
  f32:*) ;;
  u8-nhwc:*) printf -- '--input-type u8 --input-layout nhwc' ;;
  *) printf -- '--input-type %s' "${1%%:*}" ;;
  esac
}
end_to_end() { # network, batch: a row
  printf '| %s | %s |' "$1" "$2"
  bench "$1" "$2"
  count $?
  alone=$(value "$temp/bench" device_ms)
  [ -n "$alone" ] || { echo " failed: $(tail -1 "$temp/err" | cut -c1-100) |"; return; }
  awk -v ms="$alone" -v n="$2" 'BEGIN { if (n > 1) printf " %.0f |", 1e3 * n / ms; else printf " %.3f ms |", ms }'
  for kind in $kinds; do
    [ "$(left)" -lt 5 ] && { printf ' no time |'; continue; }
    options=$(kind_options "$kind")
    if [ "$2" = 1 ]; then
      # shellcheck disable=SC2086 # words
      bench "$1" 1 -n 300 $options
      count $?
      awk -v all="$(value "$temp/bench" median)" -v ms="$(value "$temp/bench" device_ms)" \
        'BEGIN { if (all == "") printf " failed |"; else printf " %.3f ms, %+.0f us |", all, 1e3 * (all - ms) }'
    else
      case $kind in *:pageable) options="$options --pageable" ;; esac
      # shellcheck disable=SC2086
      bench "$1" "$2" --streams "${STREAMS:-3}" --min-duration 2s $options
      count $?
      awk -v rate="$(value "$temp/bench" rate)" -v n="$2" -v ms="$alone" \
        'BEGIN { if (rate == "") printf " failed |"; else printf " %.0f, %.0f %% |", rate * n, rate * ms / 10 }'
    fi
  done
  echo
}
if wants endtoend; then
  printf '\nEnd to end, fp16: images/s and their share of the device alone (batches, %s runs in flight); latency and what it has beyond the steps (single pictures):\n\n| network | batch | device alone |' "${STREAMS:-3}"
  for kind in $kinds; do printf ' %s %s |' "${kind%%:*}" "${kind#*:}"; done
  printf '\n|---|---|---|'
  for kind in $kinds; do printf -- '---|'; done
  echo
  for row in $ends; do
    [ "$(left)" -lt 10 ] && { echo "no time for $row"; continue; }
    end_to_end "${row%%:*}" "${row#*:}"
  done
fi
if wants demos; then
  for demo in resnet50-res3 mobilenetv2 merged-copies; do
    seconds=$(left)
    [ "$seconds" -lt 5 ] && { echo "no time for $demo"; continue; }
    echo
    timeout -k 5 "$([ "$seconds" -lt 100 ] && echo "$seconds" || echo 100)" "$hone" demo $demo --device cuda 2>&1
    count $?
  done
fi
if wants peers; then
  if python3 -c 'import torch' 2>/dev/null; then
    seconds=$(left)
    # shellcheck disable=SC2086
    timeout -k 5 "$([ "$seconds" -lt 10 ] && echo 10 || echo "$seconds")" python3 "$root/bench/peers/torch_gpu.py" $torch 2>"$temp/err" || { count 1; tail -3 "$temp/err"; }
    if [ -d "${ANCHORS:-}" ]; then
      printf '\nPyTorch and cuDNN in the same call:\n\n```\n'
      for script in "gpu_cudnn_fused.py" "gpu_bench.py ceil res3 lat"; do
        seconds=$(left)
        [ "$seconds" -lt 10 ] && { echo "no time for $script"; continue; }
        # shellcheck disable=SC2086 # the sections are words
        (cd "$ANCHORS" && PYTHONUNBUFFERED=1 timeout -k 5 "$seconds" python3 $script 2>&1 | grep -v Warning)
      done
      printf '```\n'
    fi
  else echo "peers left out: python3 has no torch"; fi
fi
printf '\n%d passed, %d failed in %d s\n' $passed $failed $(($(date +%s) - start))
[ $failed = 0 ]
