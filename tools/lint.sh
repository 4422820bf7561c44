#!/bin/sh
# Formatting, layers, pages, self-contained public headers, static analysis. Silent when clean, exit 1 otherwise.
set -u
cd "$(dirname "$0")/.."
bad=0
git ls-files -co --exclude-standard '*.c' '*.h' | xargs -P "$(nproc)" -n 64 clang-format --dry-run -Werror 2>&1 | head -20 | grep . &&
  { echo "lint: run 'make fmt'"; bad=1; }
sh tools/check_layers.sh || bad=1
sh tools/check_output.sh || bad=1
sh tests/docs/pages.sh || { echo "lint: make fmt wraps pages"; bad=1; }
for h in include/hone/*.h; do
  cc -std=c11 -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c "$h" || bad=1
  if command -v c++ >/dev/null 2>&1; then c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c++ "$h" || bad=1; fi
done
long=$(git ls-files -co --exclude-standard '*.c' '*.h' | xargs wc -l | awk '$2 != "total" && $1 > 900 {print $2 ": " $1 " lines"}')
[ -n "$long" ] && { echo "lint: files of more than 900 lines, each a place to split:"; echo "$long"; bad=1; }
[ -f build/compile_commands.json ] || cmake --preset release >/dev/null || exit 1
# ISA files are analysed by clang with their own flags from the database; the analyser's checks are in .clang-tidy.
# What this build leaves out (the CUDA backend where CUDA's headers are missing) cannot be analysed here.
# Each process reads the whole database first, so it gets many files; kernels, whose intrinsics take longest, come first.
sed -n "s#.*\"file\": \"$PWD/\([^\"]*\.c\)\".*#\1#p" build/compile_commands.json | grep -E '^(src|cli)/' | sort -u >build/tidy.files
{ grep /kernels/ build/tidy.files; grep -v /kernels/ build/tidy.files; } |
  xargs -P "$(nproc)" -n 16 clang-tidy -p build --quiet 2>/dev/null >build/tidy.log
grep -E 'warning:|error:' build/tidy.log | sort -u | head -40 | grep . && bad=1
exit $bad
