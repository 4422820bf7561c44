#!/bin/sh
# hone doctor, as it is called: sh doctor.sh HONE. Whatever is missing, it says so and ends with 0.
set -u
hone=$1 bad=0
work=$(mktemp -d "${TMPDIR:-/tmp}/doctor-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; bad=1; }
export HOME="$work"
unset XDG_CACHE_HOME XDG_DATA_HOME HONE_HISTORY
"$hone" doctor --lang en >"$work/text" 2>&1 || fail "exit $?"
grep -q '^ok hone .*a small network runs' "$work/text" || { fail "hone does not work"; cat "$work/text"; }
grep -q "^ok cache folder *$work/.cache/hone" "$work/text" || fail "the cache folder"
grep -q '^ok HTTP server *libmicrohttpd is here' "$work/text" || grep -q '^ - HTTP server .*libmicrohttpd' "$work/text" || fail "whether models can be served"
LC_ALL=C.UTF-8 "$hone" doctor --lang zh >"$work/zh" 2>&1 || fail "exit $?"
grep -q '^ok 处理器' "$work/zh" || fail "Chinese"
[ "$(grep -c '^[ o!][-k!] ' "$work/text")" = "$(grep -c '^[ o!][-k!] ' "$work/zh")" ] || fail "Chinese has other checks"
# What lacks has its costs and what to do.
awk '/^ ! / { want = 1; next } want == 1 { if (!/costs/) bad = 1; want = 2; next } want == 2 { if (!/to do/) bad = 1; want = 0 } END { exit bad }' "$work/text" ||
  { fail "costs and what to do"; cat "$work/text"; }
# Nothing was made.
[ -z "$(find "$work" -mindepth 1 -type d)" ] || fail "it made folders"

lacking() { # the environment of one examination
  env "$@" "$hone" doctor --lang en >"$work/text" 2>&1 || fail "exit $? with $*"
}
says() { grep -q "$1" "$work/text" || { fail "no line '$1'"; cat "$work/text"; }; }
lacking -u HOME PATH=/nonexistent
says '^ ! cache folder *none'
says '^ ! history *none'
says '^ - Python package *there is no python3'
mkdir "$work/ops" && echo no >"$work/ops/broken.so" && touch "$work/file"
lacking XDG_CACHE_HOME=/dev/null HONE_HISTORY="$work/file/x/history.db" HONE_CPU=scalar CC=/nonexistent HONE_OP_PATH="$work/ops"
says '^ ! cache folder */dev/null/hone cannot be written'
says "^ ! history *$work/file/x cannot be written"
says '^ ! instructions *scalar'
says '^ ! C compiler *none'
says '^ ! custom operators *0 plugins are used, 1 refused: broken'

"$hone" doctor --json >"$work/json" || fail "exit $? with --json"
if command -v jq >/dev/null 2>&1; then
  jq -e '.works and (.version | length > 0) and (.checks | length > 10) and all(.checks[]; (.health | IN("good", "note", "lacks", "broken")) and
    (.found | length > 0) and ((.health == "lacks") == (.cost != null)))' "$work/json" >/dev/null || { fail "the document"; cat "$work/json"; }
else
  echo "SKIP: jq is not installed"
fi
"$hone" doctor --json >/dev/full 2>/dev/null
[ $? = 6 ] || fail "a full device"
exit $bad
