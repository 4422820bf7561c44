#!/bin/sh
# Man pages and completion: sh manual.sh HONE. Every command has a page that man's checkers take, every shell takes its
# script, and bash's completes commands, options, values, networks and files.
set -u
hone=$1 bad=0
work=$(mktemp -d "${TMPDIR:-/tmp}/manual-XXXXXX") || exit 1
export HOME="$work" # of the shells
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; bad=1; }
has() { command -v "$1" >/dev/null 2>&1 || { echo "SKIP: $1 is not installed"; false; }; }

"$hone" help --format man --output-dir "$work/man1" || fail "man pages"
wanted=$(($("$hone" help | sed -n '/^commands:/,/^$/p' | grep -c '^  ') + $("$hone" op | grep -c '^  hone op ') + 1))
[ "$(find "$work/man1" -name '*.1' | wc -l)" = "$wanted" ] || fail "not a page a command: $wanted wanted"
"$hone" help --format man bench | cmp - "$work/man1/hone-bench.1" || fail "a page alone is another one"
for option in $("$hone" bench --help | sed -n 's/^  .*  *--\([a-z-]*\).*/\1/p'); do
  grep -qF -- "$(printf '\\-\\-%s' "$option" | sed 's/\([a-z]\)-/\1\\-/g')" "$work/man1/hone-bench.1" || fail "hone-bench(1) lacks --$option"
done
if has mandoc; then mandoc -T lint -W warning "$work"/man1/*.1 | grep -v 'missing date' && fail "mandoc complains"; fi
if has man && has groff; then
  for page in "$work"/man1/*.1; do LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null | grep . && fail "man complains of $page"; done
fi

for shell in bash zsh fish; do
  "$hone" help --format $shell >"$work/$shell" || fail "$shell"
  if has $shell; then $shell -n "$work/$shell" || fail "$shell does not take its script"; fi
done
"$hone" help --format nonsense 2>/dev/null && fail "a format that there is not"
"$hone" help --format bash --output-dir "$work" 2>/dev/null && fail "--output-dir without man"

if command -v bash >/dev/null 2>&1; then
  touch "$work/model.onnx"
  cat >"$work/try" <<'BASH'
. ./bash
try() { # wanted, words; the last one is completed
  local wanted=$1; shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  _hone 2>/dev/null
  [[ " ${COMPREPLY[*]} " = *" $wanted "* ]] || { echo "$*: '${COMPREPLY[*]}', not $wanted"; exit 1; }
}
try bench hone be
try model.onnx hone mod
try --precision hone bench --prec
try fp16 hone bench --precision f
try f32 hone model.onnx --precision f
try model.onnx hone bench -t 2 mod
try new hone op n
try --device hone op bench --dev
try cuda hone op bench --device c
try resnet50 hone zoo res
try resnet50 hone bench zoo : res
try resnet50 hone bench zoo :
try zoo: hone bench zo
try model.onnx hone optimize -o mod
try profile hone help pro
try '' hone bench --threads ''
BASH
  (cd "$work" && bash try) || fail "completion in bash"
fi
if command -v fish >/dev/null 2>&1; then
  HOME=$work XDG_CONFIG_HOME=$work fish -c "source $work/fish; complete -C 'hone bench --precision '" | grep -q '^fp16' || fail "completion in fish"
fi
exit $bad
