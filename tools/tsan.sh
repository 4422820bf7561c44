#!/bin/sh
# The tests that use threads, and whole networks on four threads, under ThreadSanitizer. Any report is a failure; nothing is suppressed.
# usage: tools/tsan.sh [build]   build: no more than that
set -eu
cd "$(dirname "$0")/.."
cmake --preset tsan >build-tsan.log 2>&1 && cmake --build build-tsan --target thread_tests >>build-tsan.log 2>&1 || {
  tail -40 build-tsan.log
  exit 1
}
rm -f build-tsan.log
[ "${1:-}" != build ] || exit 0
TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=0}" ctest --test-dir build-tsan -L threads --output-on-failure -j "$(nproc)"
