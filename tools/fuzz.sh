#!/bin/sh
# Fuzzes every target for SECONDS (argument 1) under ASan + UBSan, as many at once as there are processors; importers, which are
# many and share their readers, for half of that. Argument 2: only targets that this pattern matches. Argument 3, build: no more
# than that, as for so many seconds. Prints one line a target; exit 1 when one found something. Inputs that fail are left in build-fuzz/found/.
set -u
cd "$(dirname "$0")/.."
seconds=${1:-120}
only=${2:-*}
# For a few seconds of running, compiling at -O1 takes longer than all else.
level=-O1
[ "$seconds" -gt 10 ] || level=-O0
cmake --preset fuzz -DCMAKE_C_FLAGS_RELWITHDEBINFO="$level -g1" >/dev/null || exit 1
cmake --build build-fuzz --target fuzz_targets >build-fuzz/build.log 2>&1 || { tail -30 build-fuzz/build.log; exit 1; }
[ "${3:-}" != build ] || exit 0
mkdir -p build-fuzz/found
TMPDIR=$(mktemp -d) || exit 1 # what a target that is killed leaves behind goes, too
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
one() {
  name=$(basename "$1")
  corpus=build-fuzz/corpus/$name
  mkdir -p "$corpus"
  [ -x build-fuzz/fuzz_seeds ] && timeout -k 5 60 build-fuzz/fuzz_seeds "$name" "$corpus" >/dev/null 2>&1
  # The quarantine of freed memory is kept small, so that the limit on memory speaks of what is alive. libFuzzer's own limits do not hold
  # inside a mutator: a target that overruns them is killed, by SIGABRT first, so that its log says where it was.
  if ASAN_OPTIONS=quarantine_size_mb=32:handle_abort=1 timeout -s ABRT -k 20 $(($2 + 90)) "$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
      -artifact_prefix="build-fuzz/found/$name-" "$corpus" >"build-fuzz/$name.log" 2>&1; then
    echo "fuzz $name: ok, $(grep -o 'number_of_executed_units: [0-9]*' "build-fuzz/$name.log" | grep -o '[0-9]*$') inputs"
  else
    echo "fuzz $name: FAILED, see build-fuzz/$name.log"
    grep -E 'ERROR|SUMMARY|runtime error' "build-fuzz/$name.log" | head -3
    grep -q 'SUMMARY' "build-fuzz/$name.log" || echo "  it did not end within $(($2 + 90)) s"
  fi
}
running=0
: >build-fuzz/results
# Importers last: those that run at once then take equally long.
for t in $(ls build-fuzz/fuzz/* | grep -v /fuzz_import_) build-fuzz/fuzz/fuzz_import_*; do
  [ -x "$t" ] || continue
  # shellcheck disable=SC2254
  case $(basename "$t") in $only) ;; *) continue ;; esac
  case $t in */fuzz_import_*) s=$(((seconds + 1) / 2)) ;; *) s=$seconds ;; esac
  one "$t" "$s" >>build-fuzz/results &
  running=$((running + 1))
  if [ "$running" -ge "$(nproc)" ]; then wait; running=0; fi
done
wait
cat build-fuzz/results
! grep -q FAILED build-fuzz/results
