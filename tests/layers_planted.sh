#!/bin/sh
# tools/check_layers.sh finds what breaks it: one wrong #include at a time in a tree of empty files.
# usage: layers_planted.sh SOURCE_FOLDER
set -eu
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/tools"
cp "$1/tools/check_layers.sh" "$tree/tools/"
cd "$tree"
git init -q .
bad=0

# FILE INCLUDED WORDS: the check refuses it with these words; "": it takes it.
check() {
  mkdir -p "$(dirname "$1")"
  printf '#include "%s"\n' "$2" >"$1"
  said=$(sh tools/check_layers.sh 2>&1) && found=0 || found=1
  if [ -z "$3" ] && [ "$found" = 1 ]; then echo "$1 may include $2, but: $said"; bad=1; fi
  if [ -n "$3" ]; then
    case "$found $said" in
    "1 $1"*"$3"*) ;;
    *) echo "$1 may not include $2 ($3), but: rc $found, $said"; bad=1 ;;
    esac
  fi
  rm "$1"
}

# FILE INCLUDED FILE INCLUDED WORDS: two at once.
circle() {
  mkdir -p "$(dirname "$1")" "$(dirname "$3")"
  printf '#include "%s"\n' "$2" >"$1"
  printf '#include "%s"\n' "$4" >"$3"
  said=$(sh tools/check_layers.sh 2>&1) && found=0 || found=1
  case "$found $said" in
  "1 "*"$5 in a circle"*) ;;
  *) echo "$1 and $3 are a circle of $5, but: rc $found, $said"; bad=1 ;;
  esac
  rm "$1" "$3"
}

check src/optimize/match/a.c optimize/match/b.h ''
check src/optimize/passes/common/a.c optimize/match/b.h ''
check src/optimize/lower/a.c optimize/step/b.h ''
check src/optimize/plan/a.c optimize/lower/b.h ''
check src/backends/cpu/a.c optimize/step/b.h ''
check src/insight/report/a.c insight/json.h ''
check src/optimize/match/patterns/a.c optimize/passes/common/b.h 'optimize/match may not see optimize/passes'
check src/optimize/step/a.h optimize/lower/b.h 'optimize/step may not see optimize/lower'
check src/optimize/step/a.h optimize/plan/b.h 'optimize/step may not see optimize/plan'
check src/optimize/lower/a.c optimize/plan/b.h 'optimize/lower may not see optimize/plan'
check src/optimize/lower/a.c optimize/passes/b.h 'optimize/lower may not see optimize/passes'
check src/optimize/plan/a.c optimize/other/b.h 'optimize/plan may not see optimize/other'
check src/optimize/other/a.c optimize/step/b.h 'not in the table'
check src/model/ir/a.c model/onnx/b.h 'model/ir may not see model/onnx'
check src/model/ir/a.c model/ops/b.h 'model/ir may not see model/ops'
check src/model/ir/a.c model/operators.h 'model/ir may not see model'
check src/model/zoo/a.c model/operators.h ''
check src/insight/json.c insight/report/b.h 'insight may not see insight/report'
check src/insight/profile/a.c insight/diagnose/b.h 'insight/profile may not see insight/diagnose'
check src/backends/cuda/a.c optimize/plan/b.h 'backends know optimize/step alone'
check src/runtime/a.c optimize/lower/b.h 'optimize/lower is for optimize alone'
check src/base/a.c model/b.h 'base is below model'
circle src/optimize/passes/a.c optimize/passes/common/b.h src/optimize/passes/common/c.h optimize/passes/d.h folders
circle src/model/ops/conv/a.c model/ops/pooling/b.h src/model/ops/pooling/c.h model/ops/conv/d.h folders
circle src/insight/import/a.h insight/import/common/b.h src/insight/import/common/c.c insight/import/d.h folders
circle src/runtime/a.h runtime/b.h src/runtime/b.c runtime/a.h files
exit $bad
