#!/bin/sh
# All tests: lint, the release build's tests (command line, conformance), everything again under ASan + UBSan, what uses threads under
# TSan, a short fuzz of each target. Ends with the seconds of every stage and the line "N passed, N failed". HONE_TEST_FAST=1 leaves out
# lint, sanitizers and fuzz; HONE_FUZZ_SECONDS is the time of a fuzz target (30; importers half of it).
set -u
cd "$(dirname "$0")/.."
passed=0 failed=0 stages='' stage='' since=0
lap() { # ends the stage before: its name and seconds are kept
  now=$(date +%s)
  [ -n "$stage" ] && stages="$stages$(printf '%6d s  %s' $((now - since)) "$stage")
"
  stage=$1 since=$now
}
say() { lap "$1"; printf '\n== %s (%s)\n' "$1" "$(date +%H:%M:%S)"; }
count() { # name status
  if [ "$2" = 0 ]; then passed=$((passed + 1)); echo "ok      $1"; else failed=$((failed + 1)); echo "FAILED  $1"; fi
}
suite() { # preset, build folder
  say "build: $1"
  cmake --preset "$1" >"$2.log" 2>&1 && cmake --build "$2" >>"$2.log" 2>&1
  s=$?
  count "build $1" $s
  if [ $s != 0 ]; then tail -40 "$2.log"; return; fi
  rm -f "$2.log"
  say "tests: $1"
  ctest --test-dir "$2" --output-on-failure -j "$(nproc)" >"$2/ctest.log" 2>&1
  grep -E 'Test +#|\*\*\*|SKIP' "$2/ctest.log" | sed 's/  */ /g' | grep -v 'Start ' | head -200
  p=$(grep -cE 'Test +#[0-9]+: .*(Passed|Skipped)' "$2/ctest.log")
  f=$(grep -cE 'Test +#[0-9]+: .*\*\*\*(Failed|Timeout|Exception|Not Run)' "$2/ctest.log")
  passed=$((passed + p)) failed=$((failed + f))
  [ "$f" != 0 ] && sed -n '/The following tests FAILED/,$p' "$2/ctest.log" && grep -B2 -A25 -E 'FAILED|ERROR|runtime error|Assert' "$2/ctest.log" | head -120
}
suite release build
if [ -z "${HONE_TEST_FAST:-}" ]; then
  say lint
  sh tools/lint.sh
  count lint $?
  suite asan build-asan
  say "threads, under TSan"
  sh tools/tsan.sh
  count tsan $?
  say "fuzz, ${HONE_FUZZ_SECONDS:-30} seconds a target"
  sh tools/fuzz.sh "${HONE_FUZZ_SECONDS:-30}"
  count fuzz $?
fi
lap ''
printf '\n%s\n%d passed, %d failed\n' "$stages" "$passed" "$failed"
[ "$failed" = 0 ]
