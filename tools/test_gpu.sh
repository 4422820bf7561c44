#!/bin/sh
# Tests on a machine with a GPU, in under 8 minutes: every tactic against the CPU's answers, the ONNX node tests on the device, the zoo and
# a folder of models on CPU and GPU, the profiler's closure, failures on purpose, compute-sanitizer where it is installed.
# usage: tools/test_gpu.sh [FOLDER]   FOLDER: a build folder or a portable folder; the script's own where it lies beside `hone`.
# MODELS=FOLDER adds a folder of .onnx files; TESTDATA=FOLDER is libonnx-testdata's data/ where the packed copy is not beside hone;
# PARTS="tactics nodes zoo models profile faults sanitizer" chooses. Prints one SKIP line without a GPU; ends with "N passed, N failed".
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -gt 0 ]; then bin=$(cd "$1" && pwd); elif [ -x "$here/hone" ]; then bin=$here; else bin=$here/../build; fi
root=$here
[ -f "$root/tests/tactics/cases.txt" ] || root=$(cd "$here/.." && pwd)
parts=${PARTS:-tactics nodes zoo models profile faults sanitizer}
hone=$bin/hone
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export HONE_TUNE_CACHE=off
start=$(date +%s)
limit=${SECONDS_MAX:-450}
passed=0 failed=0 left_out=0

wants() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }
say() { printf '\n== %s (%s s)\n' "$1" $(($(date +%s) - start)); }
count() { # status, name, remark
  if [ "$1" = 0 ]; then passed=$((passed + 1)); printf 'ok      %-52s %s\n' "$2" "$3"
  else failed=$((failed + 1)); printf 'FAILED  %-52s %s\n' "$2" "$3"; fi
}
try() { # seconds, name, command...: one test; its last line is the remark
  seconds=$1 name=$2; shift 2
  rest=$((limit - ($(date +%s) - start)))
  if [ "$rest" -lt 5 ]; then left_out=$((left_out + 1)); printf 'no time %s\n' "$name"; return 0; fi
  [ "$seconds" -gt "$rest" ] && seconds=$rest
  timeout -k 5 "$seconds" "$@" >"$temp/out" 2>&1 </dev/null
  status=$?
  count $status "$name" "$(grep -v '^ *$' "$temp/out" | tail -1 | cut -c1-100)"
  [ $status = 0 ] || tail -15 "$temp/out" | cut -c1-200 | sed 's/^/        /'
  return 0
}

"$hone" run zoo:many_inputs --device cuda >"$temp/out" 2>&1
status=$?
if [ $status = 4 ]; then echo "SKIP: $(head -1 "$temp/out")"; exit 0; fi
"$hone" device --device cuda 2>/dev/null | head -4

if wants tactics; then
  say "tactics"
  [ -x "$bin/check_tactics" ] && try 150 "check_tactics" "$bin/check_tactics" "$root/tests/tactics/cases.txt" --device cuda
  [ -x "$bin/check_pointwise" ] && try 60 "check_pointwise" "$bin/check_pointwise" --device cuda
  for program in "$bin"/test_driver "$bin"/tests/test_driver "$bin"/check_cuda* "$bin"/tests/test_cuda*; do
    [ -x "$program" ] && try 60 "$(basename "$program")" "$program" --device cuda
  done
fi
if wants nodes; then
  say "node tests of ONNX"
  data=${TESTDATA:-/usr/share/libonnx-testdata/data}
  if [ -f "$bin/onnx-testdata.tar.xz" ]; then
    mkdir "$temp/data" && tar -xJf "$bin/onnx-testdata.tar.xz" -C "$temp/data" && data=$temp/data
  fi
  if [ -d "$data/node" ]; then
    # Every test is a process that opens the GPU: many at once. One line "passed N, refused N, wrong N" a batch.
    find "$data/node" "$data/simple" "$data/pytorch-operator" "$data/pytorch-converted" -name model.onnx | sed 's,/model.onnx$,,' |
      timeout -k 5 200 xargs -P 12 -n 40 "$bin/onnx_conformance" --engine cuda --quiet >"$temp/nodes" 2>&1 </dev/stdin
    awk '{ for (i = 1; i < NF; i++) if ($i == "passed" || $i == "wrong") { v = $(i + 1); sub(/,/, "", v); n[$i] += v } }
      END { printf "%d passed, %d wrong\n", n["passed"], n["wrong"]; exit !(n["passed"] >= 1000 && n["wrong"] == 0) }' "$temp/nodes" >"$temp/line"
    status=$?
    count $status "onnx_conformance" "$(cat "$temp/line")"
    [ $status = 0 ] || grep -v passed "$temp/nodes" | head -15 | cut -c1-200
  else echo "left out: no node tests at $data"; fi
fi
if wants zoo; then
  say "zoo: GPU beside CPU"
  for precision in f32 tf32 fp16 bf16; do
    for model in $("$hone" zoo --json | sed -n 's/.*"name": *"\([a-z0-9_-]*\)".*/\1/p'); do
      try 60 "$model $precision" "$hone" verify "zoo:$model" --device cuda --precision $precision
    done
  done
fi
if wants models && [ -d "${MODELS:-}" ]; then
  say "models of $MODELS"
  find "$MODELS" -name '*.onnx' | sort >"$temp/models"
  while read -r model; do
    try 60 "$(basename "$model" .onnx)" "$hone" verify "$model" --device cuda
    try 60 "$(basename "$model" .onnx) fp16" "$hone" verify "$model" --device cuda --precision fp16
  done <"$temp/models"
fi
closes() { # model arguments...: the profile's parts add up to the outer clock within 2 %
  "$hone" profile "$@" --device cuda --json >"$temp/profile.json" || return 1
  sed -n 's/.*"residual_pct": *\([^,}]*\).*/\1/p' "$temp/profile.json" | head -1 |
    awk '{ r = $1 < 0 ? -$1 : $1; printf "residual %.2f %%\n", r; ok = r <= 2 } END { exit !ok }'
}
if wants profile; then
  say "profile: closure"
  for model in resnet50 mobilenetv2; do
    for precision in f32 fp16; do
      closes "zoo:$model" --precision $precision >"$temp/line" 2>&1
      count $? "closure $model $precision" "$(tail -1 "$temp/line")"
    done
  done
fi
fails() { # one failure on purpose: an exit code of ours and one line, no hang
  timeout -k 5 60 "$@" >"$temp/out" 2>&1 </dev/null
  status=$?
  [ $status -ge 1 ] && [ $status -le 8 ] && grep -q . "$temp/out"
}
if wants faults; then
  say "failures on purpose"
  fails "$hone" run zoo:resnet50 --batch 200000 --device cuda
  count $? "more than the device's memory" "$(head -1 "$temp/out" | cut -c1-100)"
  fails "$hone" run zoo:many_inputs --device cuda:77
  count $? "a GPU that is not there" "$(head -1 "$temp/out" | cut -c1-100)"
fi
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if wants sanitizer; then
  say "compute-sanitizer"
  if [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck; do
      try 100 "$tool mobilenetv2" "$sanitizer" --tool $tool --error-exitcode 9 "$hone" run zoo:mobilenetv2 --device cuda
      try 120 "$tool resnet50 fp16" "$sanitizer" --tool $tool --error-exitcode 9 "$hone" run zoo:resnet50 --device cuda --precision fp16
    done
  else echo "left out: compute-sanitizer is not installed"; fi
fi
[ $left_out = 0 ] || printf '\n%d left out: no time\n' $left_out
printf '\n%d passed, %d failed in %d s\n' $passed $failed $(($(date +%s) - start))
[ $failed = 0 ]
