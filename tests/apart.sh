#!/bin/sh
# Runs a test apart from all else on the machine: with an empty HOME, without settings or caches of whoever runs it or of an earlier
# test, and with a folder for temporary files ($TMPDIR) of its own. Both are removed afterwards; a test that leaves something in HOME
# beyond hone's cache and data has failed.
# usage: apart.sh COMMAND...
# HONE_TEST_TIMES=FILE: gets a line with the seconds of processors, the system's part of them and the command. On a busy machine these
# say what a test costs; how long it took does not.
set -u
umask 022
own=$(mktemp -d "${TMPDIR:-/tmp}/hone-test-XXXXXX") || exit 6
chmod 711 "$own" # tests that give up the rights of root still get to their own folder
trap 'rm -rf "$own"' EXIT
trap 'exit 143' TERM INT HUP
mkdir "$own/home" "$own/tmp"
# What CI services and desktops set changes what hone prints.
for name in $(env | sed -n 's/^\(XDG_[A-Z_]*\|GITHUB_[A-Z_]*\|GITLAB_[A-Z_]*\|HONE_HISTORY\|NO_COLOR\|CLICOLOR[A-Z_]*\|COLUMNS\|LANG\|LANGUAGE\|LC_[A-Z]*\)=.*/\1/p'); do
  unset "$name"
done
HOME=$own/home TMPDIR=$own/tmp "$@"
status=$?
if [ -n "${HONE_TEST_TIMES:-}" ]; then
  times >"$own/times"
  awk -v command="$*" 'NR == 2 { split($1, user, "[ms]"); split($2, kernel, "[ms]"); s = kernel[1] * 60 + kernel[2]
    printf "%.2f %.2f %s\n", user[1] * 60 + user[2] + s, s, command }' "$own/times" >>"$HONE_TEST_TIMES"
fi
strange=$(cd "$own/home" && find . -mindepth 1 ! -path ./.cache ! -path './.cache/hone*' ! -path ./.local ! -path ./.local/share ! -path './.local/share/hone*' | head -5)
if [ -n "$strange" ]; then
  echo "FAIL: the test wrote into HOME: $strange"
  [ $status != 0 ] || status=1
fi
exit $status
