#!/bin/sh
# Tests on a machine with a GPU, in under 10 minutes: every tactic against the CPU's answers, odd sizes, the ONNX node tests on the device,
# the zoo and a folder of models on CPU and GPU, the profiler's closure, failures on purpose, compute-sanitizer where it is installed.
# usage: tools/test_gpu.sh [FOLDER]   FOLDER: a build folder or a portable folder; the script's own where it lies beside `hone`.
# MODELS=FOLDER adds a folder of .onnx files; TESTDATA=FOLDER is libonnx-testdata's data/ where the packed copy is not beside hone;
# PARTS="tactics shapes nodes zoo models libraries profile faults sanitizer" chooses; JOBS=N processes at once (the processors), which all
# compile kernels into one new cache. RECORD=FOLDER: processes that passed are noted there, with the kernels, and the next call with this
# folder does the others alone, so that calls of SECONDS_MAX seconds (540) end the whole between them. Cases run in a part of their variants
# (check_tactics --thin: every case and every tactic), VARIANTS=all in all of them, which takes longer (SECONDS_MAX=1800). Prints one SKIP
# line without a GPU; ends with "N passed, N failed".
# PARTS=sanitizer: memcheck and racecheck over every tactic of ours once in each storage type (check_tactics --once, check_attention,
# a small network for generated kernels), and over resnet50 in fp16 once.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -gt 0 ]; then bin=$(cd "$1" && pwd); elif [ -x "$here/hone" ]; then bin=$here; else bin=$here/../build; fi
root=$here
[ -d "$root/tests/tactics/cases" ] || root=$(cd "$here/.." && pwd)
parts=${PARTS:-tactics shapes nodes zoo models libraries profile faults sanitizer}
jobs=${JOBS:-$(nproc)}
[ "$jobs" -le 32 ] || jobs=32
hone=$bin/hone
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export HONE_TUNE_CACHE=off
record=${RECORD:-}
if [ -n "$record" ]; then mkdir -p "$record/kernels" && record=$(cd "$record" && pwd) || exit 2; fi
: "${HONE_KERNEL_CACHE:=${record:-$temp}/kernels}"
export HONE_KERNEL_CACHE
start=$(date +%s)
limit=${SECONDS_MAX:-540}
thin=--thin whole=240
[ "${VARIANTS:-}" != all ] || thin='' whole=$limit
passed=0 failed=0 started=0

wants() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }
say() { printf '\n== %s (%s s)\n' "$1" $(($(date +%s) - start)); }
count() { # status, name, remark
  if [ "$1" = 5 ]; then printf 'unsaid  %-44s %s\n' "$2" "$3" # mistrusted: the outputs say too little
  elif [ "$1" = narrow ]; then printf 'narrow  %-44s %s\n' "$2" "$3" # no kernel's doing: the type cannot hold the model
  elif [ "$1" = 0 ]; then passed=$((passed + 1)); printf 'ok      %-44s %s\n' "$2" "$3"
  else failed=$((failed + 1)); printf 'FAILED  %-44s %s\n' "$2" "$3"; fi
}

# A test may be several processes. `begin` puts one into the background, no more than $jobs at once; `finish` waits for the test's and
# counts it. Tests are named by words without blanks.
begin() { # test, seconds, command...
  test=$1 seconds=$2; shift 2
  while [ $((started - $(find "$temp" -name '*.status' | wc -l))) -ge "$jobs" ]; do sleep 0.1; done
  rest=$((limit - ($(date +%s) - start)))
  [ "$seconds" -gt "$rest" ] && seconds=$rest
  [ "$seconds" -lt 1 ] && seconds=1
  started=$((started + 1))
  base=$temp/$test.$(printf %03d $started)
  # What it was, whatever the folders are called; of the same build.
  noted=
  [ -z "$record" ] || noted=$record/$test.$(printf '%s ' "$build" "$@" | sed "s,$temp,,g; s,$root,,g; s,$bin,,g" | cksum | cut -d' ' -f1)
  if [ -n "$noted" ] && [ -f "$noted" ]; then
    cp "$noted" "$base.out" && echo "0 0" >"$base.time" && echo 0 >"$base.status"
    return
  fi
  (
    begun=$(date +%s)
    timeout -k 5 "$seconds" "$@" >"$base.out" 2>&1 </dev/null
    status=$?
    printf '%s %s\n' $(($(date +%s) - begun)) "$seconds" >"$base.time"
    [ -z "$noted" ] || [ $status != 0 ] || { cp "$base.out" "$noted.part" && mv "$noted.part" "$noted"; }
    echo $status >"$base.part" && mv "$base.part" "$base.status"
  ) &
}
finish() { # test [command that judges the outputs given as arguments, too]
  test=$1 judge=${2:-}
  while [ "$(find "$temp" -name "$test.*.out" | wc -l)" -ne "$(find "$temp" -name "$test.*.status" | wc -l)" ]; do sleep 0.1; done
  set -- "$temp/$test".*.out
  status=0 longest=$(cat "$temp/$test".*.time | sort -n | tail -1)
  for out in "$@"; do
    this=$(cat "${out%.out}.status")
    [ "$this" = 0 ] && continue
    status=$this
    [ "$this" = 124 ] && echo "out of time" >>"$out"
  done
  if [ $# = 1 ]; then remark=$(grep -v -e '^ *$' -e '^reference:' -e 'ERROR SUMMARY: 0' "$1" | tail -1 | cut -c1-100)
  else # counts of a kind are added up
    remark=$(cat "$@" | awk '/^passed [0-9]/ { for (i = 1; i < NF; i += 2) n[$i] += $(i + 1) }
      /^[0-9]+ of them with steps/ { n["on the host"] += $1 }
      /^[0-9]+ cases/ { for (i = 2; i < NF; i++) if ($(i + 1) ~ /^(runs|failures)/) n[$(i + 1)] += $i }
      END { for (k in n) printf "%s %d, ", k, n[k] }')"$# processes"
  fi
  if [ -n "$judge" ] && ! $judge "$@"; then status=1; fi
  count "$status" "$test" "${longest%% *} s: $remark"
  [ "$status" = 0 ] || [ "$status" = 5 ] || [ "$status" = narrow ] || grep -h -E 'FAIL|ERROR|hone:|out of time|wrong' "$@" | grep -v 'ERROR SUMMARY: 0' | head -12 | cut -c1-220 | sed 's/^/        /'
}

spread() { # processes, test, seconds, command...: each with its share
  processes=$1; shift
  share=0
  while [ $share -lt "$processes" ]; do
    begin "$@" --shard $share/"$processes"
    share=$((share + 1))
  done
}

"$hone" run zoo:many_inputs --device cuda >"$temp/out" 2>&1
status=$?
if [ $status = 4 ]; then echo "SKIP: $(head -1 "$temp/out")"; exit 0; fi
"$hone" device --device cuda 2>/dev/null | head -4
build=$(cat "$bin"/hone "$bin"/libhone.so* "$bin"/check_tactics 2>/dev/null | cksum)
models=$("$hone" zoo --json | sed -n 's/.*"name": *"\([a-z0-9_-]*\)".*/\1/p')
cases="$root/tests/tactics/cases $root/tests/cuda/cases.txt"

# shellcheck disable=SC2086 # cases and models are words
tactics_begin() {
  begin coverage 60 "$bin/check_tactics" $cases --device cuda --coverage
  spread "$jobs" check_tactics "$whole" "$bin/check_tactics" $cases --device cuda --tactic '-cu*' $thin
  begin check_attention 60 "$bin/check_attention"
  begin check_pointwise 120 "$bin/check_pointwise" --device cuda
  begin check_late 60 "$bin/check_late"
  begin check_quantised 60 "$bin/check_quantised"
  begin check_codes 200 "$bin/check_codes"
  begin test_driver 150 "$bin/test_driver" --device cuda
  begin test_driver_failures 150 "$bin/test_driver_failures" --device cuda
  for precision in f32 fp16; do begin small_networks 60 "$bin/check_networks" resnet50 0.25 32 $precision; done
}
tactics_finish() { for test in coverage check_tactics check_attention check_pointwise check_late check_quantised check_codes test_driver test_driver_failures small_networks; do finish $test; done; }

# cuDNN and cuBLASLt, whose plans take longer to make than all of our kernels; last.
# shellcheck disable=SC2086
libraries_begin() { spread "$jobs" libraries "$whole" "$bin/check_tactics" $cases --device cuda --tactic 'cu*' $thin; }
libraries_finish() { finish libraries; }

shapes_begin() { spread "$jobs" check_kernels 240 "$bin/check_kernels" --device cuda --tactic '-cu*'; } # libraries have odd sizes of their own
shapes_finish() { finish check_kernels; }

nodes_begin() {
  data=${TESTDATA:-/usr/share/libonnx-testdata/data}
  if [ -f "$bin/onnx-testdata.tar.xz" ]; then
    mkdir "$temp/data" && tar -xJf "$bin/onnx-testdata.tar.xz" -C "$temp/data" && data=$temp/data
  fi
  [ -d "$data/node" ] || return 0
  find "$data/node" "$data/simple" "$data/pytorch-operator" "$data/pytorch-converted" -name model.onnx | sed 's,/model.onnx$,,' | sort |
    split -l 80 - "$temp/nodes."
  for list in "$temp"/nodes.??; do
    begin onnx_conformance 240 xargs -a "$list" "$bin/onnx_conformance" --engine cuda --quiet --doubted test_adam_multiple
  done
}
enough_nodes() { # outputs: 1000 and more passed, none wrong
  cat "$@" | awk '{ for (i = 1; i < NF; i++) if ($i == "passed" || $i == "wrong") { v = $(i + 1); sub(/,/, "", v); n[$i] += v } }
    END { exit !(n["passed"] >= 1000 && n["wrong"] == 0) }'
}
nodes_finish() { if [ -d "$data/node" ]; then finish onnx_conformance enough_nodes; else echo "left out: no node tests at $data"; fi; }

# In batches, whose tiles take more than one round of the multiprocessors.
batches='resnet50:32 yolov3:16'
zoo_begin() { # the slowest first
  for row in $batches; do
    begin "${row%:*}-fp16-${row#*:}" 200 "$hone" verify "zoo:${row%:*}" --batch "${row#*:}" --device cuda --precision fp16 -n 1 -t 2
  done
  for model in bert_base yolov3 resnet50 $(echo "$models" | grep -v -e bert_base -e yolov3 -e '^resnet50$'); do
    for precision in f32 tf32 fp16 bf16; do
      begin "$model-$precision" 120 "$hone" verify "zoo:$model" --device cuda --precision $precision -n 2 -t 2
    done
  done
}
zoo_finish() {
  for row in $batches; do finish "${row%:*}-fp16-${row#*:}"; done
  for model in $models; do for precision in f32 tf32 fp16 bf16; do finish "$model-$precision"; done; done
}

names() { find "${MODELS:-/nonexistent}" -name '*.onnx' 2>/dev/null | sort; }
models_begin() {
  for model in $(names); do
    for precision in f32 fp16; do
      begin "$(basename "$model" .onnx)-$precision" 120 "$hone" verify "$model" --device cuda --precision $precision -n 3 -t 2
    done
  done
}
# f32 says too little, too; or the reference rounded to fp16 differs as well, which is then the model's doing.
overflows() {
  [ "$status" = 1 ] || return 0
  if grep -q -e 'mostly constant, zero or not finite' "$temp/${test%-fp16}-f32".*.out; then status=5
  elif why=$(grep -h -o -e '; that is fp16 itself.*' -e "; node '.*' reaches .*fp16 ends at.*" "$temp/$test".*.out | head -1) && [ -n "$why" ]; then
    status=narrow remark="$remark$why"
  fi
}
models_finish() {
  for model in $(names); do
    finish "$(basename "$model" .onnx)-f32"
    finish "$(basename "$model" .onnx)-fp16" overflows
  done
}

closes() { # model arguments...: the profile's parts add up to the outer clock within 2 %
  "$hone" profile "$@" --device cuda --json >"$temp/profile.json" || return 1
  sed -n 's/.*"residual_pct": *\([^,}]*\).*/\1/p' "$temp/profile.json" | head -1 |
    awk '{ r = $1 < 0 ? -$1 : $1; printf "residual %.2f %%\n", r; ok = r <= 2 } END { exit !ok }'
}
fails() { # exit code, words, command...: a failure on purpose: that exit code and a line with these words, no hang
  wanted=$1 words=$2; shift 2
  timeout -k 5 60 "$@" >"$temp/out" 2>&1 </dev/null
  status=$?
  [ $status = "$wanted" ] && grep -q -e "$words" "$temp/out"
}
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
# shellcheck disable=SC2086
sanitizer_begin() {
  export HONE_POOL=apart # each block an allocation of the driver's, whose bounds the tool knows
  half=$((jobs > 3 ? (jobs - 2) / 2 : 1)) # of three rounds of shares: what has ended stays noted
  for tool in racecheck memcheck; do # the longest first
    begin "$tool-resnet50" 200 "$sanitizer" --tool $tool --error-exitcode 9 "$hone" run zoo:resnet50 --device cuda --precision fp16
    begin "$tool-attention" 200 "$sanitizer" --tool $tool --error-exitcode 9 "$bin/check_attention"
    begin "$tool-mobilenetv2" 200 "$sanitizer" --tool $tool --error-exitcode 9 "$bin/check_networks" mobilenetv2 0.35 48 fp16
    spread $((3 * half)) "$tool-tactics" 240 "$sanitizer" --tool $tool --error-exitcode 9 "$bin/check_tactics" $cases --device cuda --once --tactic '-cu*'
  done
}
sanitizer_finish() { for tool in memcheck racecheck; do for what in tactics attention mobilenetv2 resnet50; do finish $tool-$what; done; done; unset HONE_POOL; }

# What computes runs beside each other; what measures, or counts on being alone, behind it.
say "tactics, odd sizes, node tests of ONNX, networks on GPU and CPU"
for part in zoo tactics nodes models shapes libraries; do wants $part && ${part}_begin; done
for part in zoo tactics nodes models shapes libraries; do wants $part && ${part}_finish; done
if wants profile; then
  say "profile: closure"
  for model in resnet50 mobilenetv2; do
    for precision in f32 fp16; do
      closes "zoo:$model" --precision $precision >"$temp/line" 2>&1
      count $? "closure $model $precision" "$(tail -1 "$temp/line")"
    done
  done
fi
if wants faults; then
  say "failures on purpose"
  fails 3 'elements' "$hone" run zoo:resnet50 --batch 65536 --device cuda
  count $? "more elements than kernels count" "$(head -1 "$temp/out" | cut -c1-100)"
  fails 4 'no device cuda:77' "$hone" run zoo:many_inputs --device cuda:77
  count $? "a GPU that is not there" "$(head -1 "$temp/out" | cut -c1-100)"
fi
if wants sanitizer; then
  say "compute-sanitizer"
  if [ -n "$sanitizer" ]; then sanitizer_begin; sanitizer_finish; else echo "left out: compute-sanitizer is not installed"; fi
fi
wait
printf '\n%d passed, %d failed in %d s\n' $passed $failed $(($(date +%s) - start))
[ $failed = 0 ]
