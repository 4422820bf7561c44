#!/bin/sh
# Random operations on many threads under ThreadSanitizer, then pictures through pipelines (release, and under ASan).
# usage: soak.sh SECONDS
set -eu
cd "$(dirname "$0")/.."
build() { # preset
  cmake --preset "$1" >"build-soak.log" 2>&1 && cmake --build "build-$1" --target soak >>build-soak.log 2>&1 || {
    tail -40 build-soak.log
    exit 1
  }
  rm -f build-soak.log
}
build tsan
TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1}" build-tsan/soak "$1"
build/soak "$(($1 / 10 + 10))"
build/soak pictures 10000 100
build asan
build-asan/soak pictures 10000 100
