#!/bin/sh
# hone MODEL whose report cannot be written: sh full_disk.sh HONE. What was measured is shown all the same, the error
# names the file, and no folder stays; nor does one of hone op new, nor a history without a run. A limit of a file's size stands in for a full disk.
set -u
hone=$1 bad=0
work=$(mktemp -d "${TMPDIR:-/tmp}/full-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
fail() { echo "FAIL: $*"; cat err; bad=1; }
"$hone" zoo mobilenetv2 --width 0.1 --size 32 -b 1 -o m.onnx >/dev/null || exit 1
shown() { grep -q '^Before and after' out && grep -q 'answers: same' out; }
trap '' XFSZ
(ulimit -f 100 && "$hone" m.onnx --lang en 2>err | cat >out; exit 0)
shown || fail "the report is not shown"
(ulimit -f 100 && "$hone" m.onnx --lang en 2>err >/dev/null)
[ $? = 6 ] || fail "not exit code 6"
grep -q '^hone: error: hone-report/report.html: cannot write: ' err || fail "not the error"
[ ! -e hone-report ] || fail "the folder stays"
mkdir -p old/report.html && echo kept >old/notes
"$hone" m.onnx --lang en --output-dir old >out 2>err
[ $? = 6 ] || fail "not exit code 6"
shown || fail "the report is not shown"
[ -f old/notes ] || fail "a folder that was there is gone"
(ulimit -f 1 && "$hone" op new part >out 2>err)
[ $? = 6 ] || fail "op new: not exit code 6"
[ ! -e part ] || fail "op new: the folder stays"
# Choices of tactics that cannot be kept are a warning that names the file once.
(ulimit -f 1 && "$hone" tune m.onnx -t 1 --tune-steps 12 --cache "$work/tactics.txt" 2>err | cat >/dev/null)
grep -qxF "hone: warning: the choices were not saved: $work/tactics.txt: cannot write: File too large" err || fail "tune: not the warning"
# A history begins with its first run, or not at all.
export HONE_HISTORY="$work/kept/history.db"
whole=0 none=0
for blocks in 1 8 24 40 56 64 80 1000; do # of 512 bytes
  (ulimit -f $blocks && "$hone" bench m.onnx -n 2 -w 0 -t 1 --save >/dev/null 2>err)
  code=$?
  if [ $code = 0 ]; then
    whole=$((whole + 1))
    [ "$("$hone" history --json | grep -c '"id": 1,')" = 1 ] || fail "$blocks blocks: no run"
  else
    none=$((none + 1))
    [ $code = 6 ] || fail "$blocks blocks: exit $code"
    [ -z "$(ls -A kept)" ] || fail "$blocks blocks: left $(ls -A kept)"
  fi
  rm -rf kept
done
[ $whole -gt 0 ] && [ $none -gt 1 ] || fail "$whole histories, $none times none"
exit $bad
