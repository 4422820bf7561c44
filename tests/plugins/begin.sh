# What the scripts of this folder begin with, whose first argument is a build folder: `. "$(dirname "$0")/begin.sh"`. They then stand in
# an empty folder; $build, $hone, $CC and $bad are set.
set -u
build=$1 bad=0
hone=$build/hone
CC=${CC:-cc}
command -v "$CC" >/dev/null 2>&1 || { echo "SKIP: there is no C compiler"; exit 77; }
fail() { echo "FAIL: $*"; bad=1; }
says() { # what is expected, exit code, command...
  want=$1 code=$2; shift 2
  out=$("$@" 2>&1); got=$?
  [ $got = "$code" ] || fail "exit $got, expected $code: $* -> $out"
  case $out in *"$want"*) ;; *) fail "no '$want' from: $* -> $out" ;; esac
}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$here/untrusted.sh"
untrusted "$hone"
