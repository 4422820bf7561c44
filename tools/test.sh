#!/bin/sh
# All tests: the release build's tests (command line, conformance), those that run on the processor again as on a smaller one (HONE_CPU=scalar and
# avx2, that on one core), lint, everything under ASan + UBSan, what uses threads under TSan, a short fuzz of each target. What comes later is
# built beside the tests, on what they leave idle. HOME is an empty folder. Ends with what was skipped and why, the ten slowest tests, the
# seconds of every stage and the line "N passed, N failed" (with ", N skipped" where tests found nothing here that they could test).
# HONE_TEST_FAST=1 leaves out lint, sanitizers and fuzz; HONE_FUZZ_SECONDS is the time of a fuzz target (4; importers half of it).
set -u
cd "$(dirname "$0")/.."
passed=0 failed=0 skipped=0 stages='' stage='' since=0
HOME=$(mktemp -d "${TMPDIR:-/tmp}/hone-home-XXXXXX") || exit 6
export HOME
notes=$HOME.notes # of skips and times, a line each
: >"$notes"
ahead='' # process group of what is built beside the tests
# Tests wait, for clocks, children and disks, and the last of a stage leaves a processor alone: a build of the least priority takes that.
# What it says does not matter: the build itself comes afterwards, and does what is left.
build_ahead() { # command
  [ -z "${HONE_TEST_FAST:-}" ] || return 0
  # The second line is for kernels that share processors by session first.
  setsid nice -n 19 sh -c "{ echo 19 >/proc/self/autogroup; } 2>/dev/null
    $1" >/dev/null 2>&1 &
  ahead=$!
}
end_ahead() { [ -z "$ahead" ] || wait "$ahead"; ahead=''; }
stop_ahead() { [ -z "$ahead" ] || { kill -- "-$ahead" || kill "$ahead"; wait "$ahead"; } 2>/dev/null; ahead=''; }
trap 'stop_ahead; rm -rf "$HOME" "$notes"' EXIT
trap 'exit 143' TERM INT HUP
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
build() { # preset, build folder
  say "build: $1"
  end_ahead
  cmake --preset "$1" >"$2.log" 2>&1 && cmake --build "$2" >>"$2.log" 2>&1
  s=$?
  count "build $1" $s
  if [ $s != 0 ]; then tail -40 "$2.log"; return 1; fi
  rm -f "$2.log"
}
# One run of ctest. The log of the whole run has each test's output, also of those that passed: lines that begin with SKIP are kept.
tests() { # name, build folder, processes, command before ctest..., --, arguments of ctest...
  name=$1 folder=$2 jobs=$3; shift 3
  say "tests: $name"
  before=''
  while [ "$1" != -- ]; do before="$before $1"; shift; done
  shift
  log=$folder/ctest.log
  # shellcheck disable=SC2086 # words
  $before ctest --test-dir "$folder" --output-on-failure -j "$jobs" "$@" >"$log" 2>&1
  grep -E 'Test +#|\*\*\*|^SKIP' "$log" | sed 's/  */ /g' | grep -v 'Start ' | head -250
  p=$(grep -cE 'Test +#[0-9]+: .*Passed' "$log")
  k=$(grep -cE 'Test +#[0-9]+: .*\*\*\*Skipped' "$log")
  f=$(grep -cE 'Test +#[0-9]+: .*\*\*\*(Failed|Timeout|Exception|Not Run)' "$log")
  [ $((p + k + f)) != 0 ] || f=1 # no test ran
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + k))
  sed -nE "s/.*Test +#[0-9]+: ([^ ]+) .*(Passed|\*\*\*[A-Z][a-z ]*) +([0-9.]+) sec/time \3 \1 ($name)/p" "$log" >>"$notes"
  awk -v suite="$name" '/^[0-9]+\/[0-9]+ Test: / { test = $3 } /^SKIP/ { sub(/^SKIP:? */, ""); print "skip " test " (" suite "): " $0 }' \
    "$folder/Testing/Temporary/LastTest.log" >>"$notes"
  [ "$f" = 0 ] || { sed -n '/The following tests FAILED/,$p' "$log"; grep -B2 -A25 -E 'FAILED|ERROR|FAIL|WRONG|runtime error|Assert' "$log" | head -150; }
}
processors=$(nproc)
seconds=${HONE_FUZZ_SECONDS:-4}
if build release build; then
  build_ahead "cmake --preset asan && cmake --build build-asan -j $processors"
  # What fails on purpose at every call is for the sanitizers, which follow.
  if [ -n "${HONE_TEST_FAST:-}" ]; then tests release build "$processors" --; else tests release build "$processors" -- -LE sanitized; fi
  # As on other machines. Tests of the GPU's backend, of its texts and of failing calls do not depend on the processor.
  # What commands say and refuse is the same on every processor: once more is enough.
  tests 'as with scalar' build "$processors" env HONE_CPU=scalar -- -LE 'emulated|any_processor|slow_in_scalar'
  core=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
  tests 'as with avx2, on one core' build 1 taskset -c "$core" env HONE_CPU=avx2 -- -LE 'emulated|any_processor|any_tier'
fi
if [ -z "${HONE_TEST_FAST:-}" ]; then
  say lint
  sh tools/lint.sh
  count lint $?
  if build asan build-asan; then
    build_ahead "sh tools/tsan.sh build; sh tools/fuzz.sh $seconds '*' build"
    tests asan build-asan "$processors" -- -LE accuracy
  fi
  say "threads, under TSan"
  end_ahead
  sh tools/tsan.sh
  count tsan $?
  say "fuzz, $seconds seconds a target"
  sh tools/fuzz.sh "$seconds"
  count fuzz $?
fi
lap ''
[ -z "$(find "$HOME" -mindepth 1 ! -name .cache ! -path "$HOME/.cache/ccache*" | head -1)" ]
count 'nothing was written into HOME' $?
if grep -q '^skip' "$notes"; then
  printf '\nNot tested here:\n'
  # The same reason in several runs, or for several tests, is one line.
  sed -n 's/^skip //p' "$notes" | awk '{ at = index($0, "): "); why = substr($0, at + 3); who = $1; if (!(why in n)) order[++m] = why; n[why]++; if (n[why] < 4 && !index(tests[why], who)) tests[why] = tests[why] " " who }
    END { for (i = 1; i <= m; i++) printf "  %s:%s%s\n", order[i], tests[order[i]], (n[order[i]] > 1 ? " (" n[order[i]] " times)" : "") }'
fi
printf '\nThe slowest tests:\n'
sed -n 's/^time //p' "$notes" | sort -rn | head -10 | awk '{ printf "%8.1f s  %s\n", $1, substr($0, length($1) + 2) }'
printf '\n%s\n%d passed, %d failed' "$stages" "$passed" "$failed"
[ "$skipped" = 0 ] || printf ', %d skipped' "$skipped"
printf '\n'
[ "$failed" = 0 ]
