#!/bin/sh
# Data flows one way: base <- model <- optimize <- backends <- runtime <- improve <- api <- cli. insight stands on base
# alone, cpu and cuda never see each other, cli and plugins use public headers only, and only model/onnx knows protobuf.
# Folders inside of rooms flow one way, too: the table below. Backends know optimize/step alone, and what is above
# optimize knows neither its match/ nor its lower/.
# Within the rooms named in `flat` no folder and no file (x.h and x.c are one; lists, x.def, are none) is in a circle of
# #includes.
# Prints every #include that breaks this; exit 1 when there is one.
set -eu
cd "$(dirname "$0")/.."
bad=0

# A folder: those of its room that it may see, which stand above it in this table. The folders of a room that is here are
# all here; what lies deeper belongs to the folder around it. "+": these are one. A room's own name: the files right in it.
folders='
optimize/match:
optimize/passes: optimize/match
optimize/step:
optimize/lower: optimize/match optimize/step
optimize/plan: optimize/step optimize/lower
model/ir:
model/ops: model/ir
model: model/ir model/ops
model/onnx: model/ir
model/zoo: model/ir model
api:
api/measure:
api/load: api/measure
api/mixed: api api/measure
api/candidates: api
api/pipeline: api
api/chain: api
api/shapes: api
api/serve: api api/shapes
insight:
insight/profile: insight
insight/compare: insight insight/profile
insight/import: insight
insight/diagnose: insight insight/profile
insight/history: insight insight/profile
insight/report: insight insight/profile
cli/terminal:
cli/options: cli/terminal
cli/reports: cli/terminal cli/options
cli/op: cli/terminal cli/options cli/reports
cli/manual: cli/terminal cli/options
cli/doctor: cli/options
cli/commands: cli/terminal cli/options cli/reports cli/op cli/manual cli/doctor
cli: cli/terminal cli/options cli/reports cli/op cli/manual cli/doctor cli/commands
'
git ls-files -co --exclude-standard '*.c' '*.h' '*.cu' '*.cuh' | grep -E '^(src|cli|plugins|include)/' | xargs awk -v folders="$folders" '
function layer(path,   p) { p = path; sub(/\/.*/, "", p); return p }
# Room and first folder of a file.
function folder(path,   p, n) { n = split(path, p, "/"); return n > 2 ? p[1] "/" p[2] : p[1] }
function read_folders(   rows, n, i, k, name, names, m, seen, s, cell) {
  n = split(folders, rows, "\n")
  for (i = 1; i <= n; i++) {
    if (rows[i] == "") continue
    split(rows[i], cell, ":"); m = split(cell[1], names, "+"); s = split(cell[2], seen, " ")
    for (k = 1; k <= s; k++) if (!(seen[k] in group)) { printf "%s: the table has %s, which is not above it\n", rows[i], seen[k]; bad = 1 }
    for (k = 1; k <= m; k++) { name = names[k]; group[name] = i; inside[layer(name)] = 1; sees[i, i] = 1 }
    for (k = 1; k <= s; k++) sees[i, group[seen[k]]] = 1
  }
}
function may_see(from, to) { return to in group && (group[from], group[to]) in sees }
BEGIN { n = split("base model optimize backends runtime improve api", order, " "); for (i = 1; i <= n; i++) rank[order[i]] = i; read_folders() }
FNR == 1 { file = FILENAME; top = file; sub(/\/.*/, "", top); inner = file; sub(/^src\//, "", inner); mine = layer(inner); room = folder(inner)
  if (top == "src" && mine in inside && !(room in group)) { printf "%s: %s is not in the table of folders\n", file, room; bad = 1 } }
/^[ \t]*#[ \t]*include[ \t]*"/ {
  inc = $0; sub(/^[^"]*"/, "", inc); sub(/".*/, "", inc); theirs = layer(inc); shelf = folder(inc); why = ""
  if (top == "include") why = "public headers include <hone/...> only"
  else if (top != "src") { if (inc ~ /\// && (theirs in rank || theirs == "insight")) why = top " may include public headers only" }
  else if (theirs == "insight" && mine != "insight" && mine != "api") why = "nobody below api calls insight"
  else if (mine == "insight" && theirs != "insight" && theirs != "base") why = "insight stands on base alone"
  else if (mine in rank && theirs in rank && rank[theirs] > rank[mine]) why = mine " is below " theirs
  else if (mine == theirs && room in group && inc ~ /\// && !may_see(room, shelf)) why = room " may not see " shelf
  else if (mine == "backends" && theirs == "optimize" && shelf != "optimize/step") why = "backends know optimize/step alone"
  else if (mine != "optimize" && (shelf == "optimize/match" || shelf == "optimize/lower")) why = shelf " is for optimize alone"
  else if (inner ~ /^backends\/cpu\// && inc ~ /^backends\/cuda\//) why = "cpu may not see cuda"
  else if (inner ~ /^backends\/cuda\// && inc ~ /^backends\/cpu\//) why = "cuda may not see cpu"
  else if (inc ~ /^model\/onnx\/(wire|schema|load)/ && inner !~ /^model\/onnx\//) why = "only model/onnx knows protobuf"
  if (why != "") { printf "%s:%d: \"%s\": %s\n", file, FNR, inc, why; bad = 1 }
}
END { exit bad }' || bad=1

flat="src/base src/model src/optimize src/backends/cpu src/backends/cuda src/runtime src/improve src/insight src/api cli"
includes() { # room: "FILE INCLUDED" without endings, within the room
  git ls-files -co --exclude-standard "$1/*.c" "$1/*.h" | xargs grep -Ho '#include "[^"]*"' /dev/null |
    sed 's/^src\///; s/:#include "/ /; s/"//; s/\.[ch] / /; s/\.[ch]$//' | awk -v room="${1#src/}/" 'index($2, room) == 1 && $1 != $2'
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
