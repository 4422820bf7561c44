#!/bin/sh
# The tutorial's commands, run as written in an empty folder: each ends as it should, and says what the page shows, numbers
# aside. "..." is anything, also at a line's end; in blocks called "varies" only the commands count, in those called "fails"
# the last one fails. The Chinese page has the same commands and output. usage: tutorial.sh BUILD SOURCE
set -u
build=$1 source=$2
page=$source/docs/guide/custom-operator-tutorial.md
command -v "${CC:-cc}" >/dev/null || { echo "SKIP: no C compiler (CC names one)"; exit 77; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/tutorial-XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/home" "$dir/work"
# shellcheck source=tests/plugins/untrusted.sh
. "$source/tests/plugins/untrusted.sh"
blocks() { sed -n '/^```console/,/^```$/p' "$1"; }
blocks "$page" >"$dir/blocks"
blocks "${page%.md}.zh-CN.md" | cmp - "$dir/blocks" || { echo "the Chinese page shows other commands or output"; exit 1; }
export HOME="$dir/home" LC_ALL=C
PATH=$build:$PATH
cd "$dir/work" || exit 1
untrusted "$build/hone"
bad=0 ran=0
plain() { sed 's/[0-9][0-9.e+-]*/N/g; s/  */ /g; s/ *$//'; }
# What the last command said against what the page shows.
compare() {
  [ "$kind" != varies ] || return 0
  plain <"$dir/said" >"$dir/have"
  while IFS= read -r output; do
    want=$(printf '%s\n' "$output" | plain)
    case $want in
    '' | '...') continue ;;
    *...*) grep -qF -- "${want%%...*}" "$dir/have" && grep -qF -- "${want##*...}" "$dir/have" ;;
    *) grep -qxF -- "$want" "$dir/have" ;;
    esac || { echo "'$command' does not say: $output"; cat "$dir/said"; bad=1; }
  done <"$dir/shown"
}
command='' kind=''
: >"$dir/shown"
while IFS= read -r line; do
  case $line in
  '```console'*) kind=${line#'```console'} kind=${kind# } ;;
  '```') compare; command='' ; : >"$dir/shown" ;;
  '$ '*)
    [ -z "$command" ] || compare
    command=${line#'$ '} ran=$((ran + 1)) code=0
    : >"$dir/shown"
    sh -c "$command" >"$dir/said" 2>&1 </dev/null || code=$?
    case $kind in
    fails) [ $code != 0 ] || { echo "'$command' does not fail"; bad=1; } ;;
    *) [ $code = 0 ] || { echo "'$command' ends with $code"; cat "$dir/said"; bad=1; } ;;
    esac ;;
  *) printf '%s\n' "$line" >>"$dir/shown" ;;
  esac
done <"$dir/blocks"
[ $ran -ge 12 ] || { echo "only $ran commands found"; bad=1; }
exit $bad
