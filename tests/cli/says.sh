#!/bin/sh
# Runs a command that has to succeed and, among its output, to print a line that fits the first pattern and none that fits the second.
# usage: says.sh PATTERN NEVER COMMAND...
set -u
wanted=$1 never=$2; shift 2
out=$("$@" 2>&1)
status=$?
printf '%s\n' "$out"
[ $status = 0 ] || { echo "exit $status"; exit 1; }
printf '%s\n' "$out" | grep -Eq -- "$wanted" || { echo "no line '$wanted'"; exit 1; }
! printf '%s\n' "$out" | grep -E -- "$never"
