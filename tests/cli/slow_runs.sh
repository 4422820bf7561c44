#!/bin/sh
# A run during which the process stood still is told by its time, and by the step or pause in which that happened.
# usage: slow_runs.sh HONE
set -eu
hone=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Runs of milliseconds: of those that take microseconds half of the time goes by between them, where nothing is told of.
"$hone" zoo mobilenetv2 --width 0.5 -o "$dir/m.onnx" >/dev/null
# The process may still be loading when it is stopped, or, on a busy machine most of the time, wait for a processor between two runs; beside
# other work whole runs take as long as a short stop. Each try stops it more often, and longer.
for try in '1 1 0.2' '1 2 0.2' '2 3 0.4' '4 5 0.8' '8 10 0.8' '16 20 1.5'; do
  # shellcheck disable=SC2086 # words
  set -- $try
  seconds=$1 stops=$2 stop=$3
  "$hone" bench "$dir/m.onnx" -t 1 --duration "${seconds}s" >"$dir/out" 2>/dev/null &
  child=$!
  while [ "$stops" -gt 0 ] && sleep "$(awk "BEGIN { print 0.6 * $seconds / $2 }")" && kill -STOP $child 2>/dev/null; do
    sleep "$stop"
    kill -CONT $child
    stops=$((stops - 1))
  done
  wait $child
  if grep -Eq "^  slowest     at [0-9.]+ s: (19[0-9]|[2-9][0-9][0-9]|[0-9]{4,})\.[0-9]+ ms, [0-9.]+ times the median: (step '.*' took (1[5-9][0-9]|[2-9][0-9][0-9]|[0-9]{4,})|a pause of (1[5-9][0-9]|[2-9][0-9][0-9]|[0-9]{4,}))" "$dir/out"; then
    grep -q '^     \$ ' "$dir/out" || { echo "no command for the slow run"; cat "$dir/out"; exit 1; }
    exit 0
  fi
done
echo "the run that stood still for $stop s is not explained"
cat "$dir/out"
exit 1
