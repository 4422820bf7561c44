#!/bin/sh
# hone diagnose and hone report on small files: what is printed, where, and the exit codes. Usage: cli.sh HONE
set -u
hone=$1
data=tests/importers/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# want CODE TEXT COMMAND...: the exit code, and a text in what is printed (standard error when CODE is not 0).
want() {
  code=$1 text=$2
  shift 2
  "$@" >"$work/out" 2>"$work/err"
  got=$?
  [ "$got" = "$code" ] || { echo "FAIL $*: exit $got instead of $code"; cat "$work/err"; bad=1; }
  if [ "$code" = 0 ]; then where=$work/out; else where=$work/err; fi
  grep -q -- "$text" "$where" || { echo "FAIL $*: no '$text' in:"; head -5 "$where"; bad=1; }
  if [ "$code" != 0 ]; then
    [ "$(wc -l <"$work/err")" = 1 ] || { echo "FAIL $*: not one line of error"; bad=1; }
    [ -s "$work/out" ] && { echo "FAIL $*: output beside an error"; bad=1; }
  fi
}

t=$data/trtexec
want 0 'measured by trtexec' "$hone" diagnose $t/profile.json $t/times_old.json $t/layers.json
want 0 '"schema"' "$hone" diagnose $t/profile.json --json
# Whole runs alone: no batch, so no samples; and no layers, which is said where findings would be.
want 0 ' runs/s' "$hone" diagnose $t/times.json
want 0 'Only whole runs were timed' "$hone" diagnose $t/times.json
want 0 'does not tell everything' "$hone" diagnose $t/times.json
want 0 'nothing was timed' "$hone" diagnose $t/layers.json
want 3 "none of the profile's 2 layers" "$hone" diagnose $t/profile_old.json $t/layers.json
want 0 'Without times' "$hone" diagnose $t/layers_names.json
want 0 'INT8 brings' "$hone" diagnose $t/profile.json $t/layers.json --float $t/profile.json --float $t/layers.json
want 3 'nowhere.json' "$hone" diagnose $t/profile.json --float "$work/nowhere.json"
want 0 'm.onnx' "$hone" report $t/profile.json --model m.onnx
gzip -c $data/onnxruntime/cpu_new.json >"$work/p.json.gz"
want 0 'measured by onnxruntime' "$hone" diagnose "$work/p.json.gz"
"$hone" report $data/ascend/op_summary_0_1.csv --json >"$work/facts.json"
want 0 'measured by ascend' "$hone" diagnose "$work/facts.json" # hone's JSON is a format, too
want 0 'measured by ascend' sh -c "'$hone' diagnose - <'$work/facts.json'"
"$hone" report $data/ascend/op_summary_0_1.csv -o "$work/r.html" --csv "$work/r.csv" --trace "$work/r.trace" || { echo "FAIL: report"; bad=1; }
grep -q '<html' "$work/r.html" && grep -q '^conv1,' "$work/r.csv" && grep -q traceEvents "$work/r.trace" ||
  { echo "FAIL: a report is missing"; bad=1; }
want 0 'mean of 200 runs, 6 layers' "$hone" compare $t/profile.json,$t/layers.json $t/profile.json
want 0 'holds no times' "$hone" compare $t/layers.json $t/profile.json
want 3 'nowhere.json' "$hone" compare $t/profile.json,"$work/nowhere.json" $t/profile.json
want 2 'hone compare' "$hone" diagnose $t/profile.json $data/onnxruntime/cpu_new.json
want 2 'trtexec' "$hone" diagnose --format nonsense $t/profile.json
want 2 'missing argument' "$hone" diagnose
want 3 'offset' "$hone" diagnose --format onnxruntime $t/profile.json
head -c 300 $t/profile.json >"$work/cut.json"
want 3 'cut.json: offset' "$hone" diagnose "$work/cut.json"
# Short rows are rows; one that ends without the end of its line was cut.
printf 'Op Name,OP Type,Task Start Time(us),Task Duration(us)\na,Add,1,2\nb,Add\nc,Add,3' >"$work/cut.csv"
want 3 'line 4: the last row ends in column 3 of 4' "$hone" diagnose "$work/cut.csv"
# FLOPs of elementwise operators alone are not what the network computes.
sed 's/"int8":\[[0-9,]*\]/"int8":[]/g' $data/onnxruntime/cpu_new.json >"$work/packed.json"
want 0 'GFLOP/s' "$hone" diagnose $data/onnxruntime/cpu_new.json
want 0 'measured by onnxruntime' "$hone" diagnose "$work/packed.json"
grep -q 'GFLOP/s' "$work/out" && { echo "FAIL: a speed without the heaviest layer's FLOPs"; bad=1; }
want 3 'no format' "$hone" diagnose CMakeLists.txt
# Packed and cut off behind what the format is told by: an error, wherever the cut is.
awk 'BEGIN { printf "["; for (i = 0; i < 9000; i++) printf "%s{\"cat\":\"Node\",\"pid\":1,\"tid\":1,\"dur\":%d,\"ts\":%d,\"ph\":\"X\",\"name\":\"n%d_kernel_time\",\"args\":{\"op_name\":\"Add\"}}", i ? "," : "", i % 7 + 1, i * 10, i; print "]" }' |
  gzip >"$work/long.gz"
size=$(wc -c <"$work/long.gz")
for part in 5 6 7 8 9; do
  head -c $((size * part / 10)) "$work/long.gz" >"$work/short.gz"
  want 3 'gzip data ends too early' timeout 20 "$hone" diagnose --format onnxruntime "$work/short.gz"
done
# As many layers as iterations: told, before a sample of each fills the memory.
awk 'BEGIN { print "Op Name,OP Type,Task Start Time(us),Task Duration(us),Infer ID"; for (i = 0; i < 6000; i++) printf "o%d,Add,%d,1,%d\n", i, 2 * i, i }' >"$work/many.csv"
want 3 'many.csv: 6000 layers in 6000 iterations' "$hone" diagnose "$work/many.csv"
want 3 'nowhere.json' "$hone" report "$work/nowhere.json"
want 3 'line 13: the benchmark failed: Input x is dynamic' "$hone" diagnose $data/openvino/failed_report.csv
want 3 'the benchmark failed: Input x is dynamic' "$hone" diagnose $data/openvino/failed_report.json
# What is no plain file: a pipe that the shell opened is read, one with a name in a folder is never waited for.
want 0 'PyTorch' sh -c "cat $data/pytorch/gpu.json | timeout 20 '$hone' diagnose -"
want 0 'PyTorch' sh -c "cat $data/pytorch/gpu.json | timeout 20 '$hone' diagnose /dev/stdin"
want 0 'PyTorch' sh -c "cat $data/pytorch/gpu.json | timeout 20 '$hone' diagnose /dev/fd/9 9<&0"
mkfifo "$work/p.json" "$work/p.sqlite"
want 3 'got a pipe (- reads standard input)' timeout 20 "$hone" diagnose "$work/p.json"
want 3 'got a pipe' timeout 20 "$hone" diagnose "$work/p.sqlite"
want 3 'got a device' timeout 20 "$hone" diagnose /dev/zero
want 3 'got a folder' "$hone" diagnose "$work"
ln -s loop.json "$work/loop.json"
want 3 'loop.json' "$hone" diagnose "$work/loop.json"
wait
exit $bad
