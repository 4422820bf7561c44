#!/bin/sh
# Formatting, layers, self-contained public headers, static analysis. Silent when clean, exit 1 otherwise.
set -u
cd "$(dirname "$0")/.."
bad=0
sources=$(git ls-files -co --exclude-standard '*.c' '*.h')
# shellcheck disable=SC2086
clang-format --dry-run -Werror $sources 2>&1 | head -20 | grep . && { echo "lint: run 'make fmt'"; bad=1; }
sh tools/check_layers.sh || bad=1
for h in include/hone/*.h; do
  cc -std=c11 -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c "$h" || bad=1
  if command -v c++ >/dev/null 2>&1; then c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c++ "$h" || bad=1; fi
done
long=$(git ls-files -co --exclude-standard '*.c' '*.h' | xargs wc -l | awk '$2 != "total" && $1 > 900 {print $2 ": " $1 " lines"}')
[ -n "$long" ] && { echo "lint: files of more than 900 lines, each a place to split:"; echo "$long"; bad=1; }
[ -f build/compile_commands.json ] || cmake --preset release >/dev/null || exit 1
# ISA files are analysed by clang with their own flags from the database; the analyser's checks are in .clang-tidy.
# What this build leaves out (the CUDA backend where CUDA's headers are missing) cannot be analysed here.
git ls-files -co --exclude-standard 'src/*.c' 'cli/*.c' |
  while read -r f; do grep -q "/$f\"" build/compile_commands.json && echo "$f"; done |
  xargs -P "$(nproc)" -n 8 clang-tidy -p build --quiet 2>/dev/null >build/tidy.log
grep -E 'warning:|error:' build/tidy.log | sort -u | head -40 | grep . && bad=1
exit $bad
