#!/bin/sh
# Data flows one way: base <- model <- optimize <- backends <- runtime <- improve <- api <- cli. insight stands on base
# alone, cpu and cuda never see each other, cli and plugins use public headers only, and only model/onnx knows protobuf.
# Within the rooms named in `flat` no folder and no file (x.h and x.c are one) is in a circle of #includes.
# Prints every #include that breaks this; exit 1 when there is one.
set -eu
cd "$(dirname "$0")/.."
bad=0
git ls-files -co --exclude-standard '*.c' '*.h' '*.cu' '*.cuh' | grep -E '^(src|cli|plugins|include)/' | xargs awk '
BEGIN { n = split("base model optimize backends runtime improve api", order, " "); for (i = 1; i <= n; i++) rank[order[i]] = i }
function layer(path,   p) { p = path; sub(/\/.*/, "", p); return p }
FNR == 1 { file = FILENAME; top = file; sub(/\/.*/, "", top); inner = file; sub(/^src\//, "", inner); mine = layer(inner) }
/^[ \t]*#[ \t]*include[ \t]*"/ {
  inc = $0; sub(/^[^"]*"/, "", inc); sub(/".*/, "", inc); theirs = layer(inc); why = ""
  if (top == "include") why = "public headers include <hone/...> only"
  else if (top != "src") { if (inc ~ /\// && (theirs in rank || theirs == "insight")) why = top " may include public headers only" }
  else if (theirs == "insight" && mine != "insight" && mine != "api") why = "nobody below api calls insight"
  else if (mine == "insight" && theirs != "insight" && theirs != "base") why = "insight stands on base alone"
  else if (mine in rank && theirs in rank && rank[theirs] > rank[mine]) why = mine " is below " theirs
  else if (inner ~ /^backends\/cpu\// && inc ~ /^backends\/cuda\//) why = "cpu may not see cuda"
  else if (inner ~ /^backends\/cuda\// && inc ~ /^backends\/cpu\//) why = "cuda may not see cpu"
  else if (inc ~ /^model\/onnx\/(wire|schema|load)/ && inner !~ /^model\/onnx\//) why = "only model/onnx knows protobuf"
  if (why != "") { printf "%s:%d: \"%s\": %s\n", file, FNR, inc, why; bad = 1 }
}
END { exit bad }' || bad=1

flat="src/backends/cuda"
includes() { # room: "FILE INCLUDED" without endings, within the room
  git ls-files -co --exclude-standard "$1/*.c" "$1/*.h" | xargs grep -Ho '#include "[^"]*"' /dev/null |
    sed 's/^src\///; s/:#include "/ /; s/"//; s/\.[a-z]* / /; s/\.[a-z]*$//' | awk -v room="${1#src/}/" 'index($2, room) == 1 && $1 != $2'
}
circle() { # what: pairs on standard input
  loop=$(tsort 2>&1 >/dev/null | sed -n 's/^tsort: \([^:]*\/[^:]*\)$/\1/p')
  [ -z "$loop" ] && return
  echo "$1 in a circle of #includes:" $loop
  return 1
}
for room in $flat; do
  includes "$room" | circle files || bad=1
  includes "$room" | sed 's/\/[^\/ ]* /\/ /; s/\/[^\/]*$/\//' | awk '$1 != $2' | sort -u | circle folders || bad=1
done
exit $bad
