#!/bin/sh
# Does make bench-runtime work? A small network and runs too few to mean anything: every line is there.
build=$1
command -v python3 >/dev/null || { echo 'SKIP: no python3'; exit 77; }
out=$(python3 bench/runtime/runtime.py "$build" --quick --rounds 1 --models /nonexistent) || exit 1
echo "$out"
for what in ' streams / best single stream, mobilenetv2' 'at once / in turn, threads of their own' \
  'at once / in turn, threads shared' 'in two threads / in two processes' 'submit and wait beyond run' \
  'planned for a new batch' 'through mobilenetv2, of the ceiling' '320x240 through mobilenetv2' \
  '1280x960 through mobilenetv2'; do
  echo "$out" | grep -q -- "$what.* met\$" || { echo "no line: $what"; exit 1; }
done
