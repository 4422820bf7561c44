#!/bin/sh
# A misspelt HONE_CPU is told in the same words by every command that works, also by those that run nothing.
# usage: instructions.sh HONE
set -u
hone=$1
failed=0
says="HONE_CPU names no instruction set; expected scalar, avx2, avxvnni, avx512, avx512vnni, avx512bf16 or amx, got avx3"
model=zoo:mobilenetv2
for command in "run $model" "verify $model" "inspect $model" "bench $model" "plan $model" "optimize $model -o /dev/null" "zoo" "doctor"; do
  # shellcheck disable=SC2086
  told=$(HONE_CPU=avx3 "$hone" $command 2>&1 >/dev/null)
  code=$?
  if [ $code -ne 2 ] || [ "$told" != "hone: error: $says" ]; then
    echo "hone $command: exit code $code, '$told'"
    failed=1
  fi
done
for command in version "run --help" "help run"; do
  # shellcheck disable=SC2086
  HONE_CPU=avx3 "$hone" $command >/dev/null || { echo "hone $command does not answer"; failed=1; }
done
HONE_CPU=scalar "$hone" plan $model >/dev/null || { echo "HONE_CPU=scalar is refused"; failed=1; }
exit $failed
