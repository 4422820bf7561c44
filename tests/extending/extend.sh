#!/bin/sh
# Adds units to a copy of the tree as docs/develop/extending.md says, builds it, and lets each show that it works. A unit is a folder here:
#   the file to add, at its place in the tree    the one file
#   line        "LIST LINE": the one line, appended to a .def list
#   fixture/    the same for a network that the check needs (a file and a line); left out where it needs none
#   targets     what is built for the check, beside hone; left out where it needs nothing else
#   check.sh    run with -ex in an empty folder; $BUILD has the copy's programs, $TREE is the copy; 77: cannot run here
# Nothing else of the copy is changed.
# usage: [OBJECTS=FOLDER] extend.sh UNIT...   OBJECTS: a release build of this tree that is up to date. What it compiled from files that are the same in
# the copy (all but what reads one of the lists, or something generated) is taken from it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
trap 'exit 143' TERM INT HUP
mkdir "$copy/tree"
# What git would take, where there is git; an unpacked archive has nothing else but build folders.
if git -C "$root" rev-parse --git-dir >/dev/null 2>&1; then
  (cd "$root" && git ls-files -co --exclude-standard -z | xargs -0 tar -cf - --ignore-failed-read 2>/dev/null) | tar -xf - -C "$copy/tree"
else
  (cd "$root" && tar -cf - --exclude='./build*' .) | tar -xf - -C "$copy/tree"
fi
add() { # folder: its files, and its line
  (cd "$1" && find . -type f -path './*/*' ! -path './fixture/*') | while read -r file; do
    [ ! -e "$copy/tree/$file" ] || { echo "FAIL: $file is there already"; exit 1; }
    cp "$1/$file" "$copy/tree/$file" # into a folder that exists
  done
  read -r list line <"$1/line"
  grep -q '^[A-Z]' "$copy/tree/$list"
  printf '%s\n' "$line" >>"$copy/tree/$list"
}
for unit; do
  [ "$(cd "$here/$unit" && find . -type f -path './*/*' ! -path './fixture/*' | wc -l)" = 1 ] && [ "$(wc -l <"$here/$unit/line")" = 1 ] ||
    { echo "FAIL: $unit is not one file and one line"; exit 1; }
  add "$here/$unit"
  [ ! -d "$here/$unit/fixture" ] || add "$here/$unit/fixture"
done
targets=$(for unit; do cat "$here/$unit/targets" 2>/dev/null || true; done)
# Built in a hurry: without the GPU, where no unit is of it, and without optimisation. ccache, which CMakeLists.txt takes where it is installed, makes no cache in an empty HOME.
[ -n "${CCACHE_DIR:-}" ] || [ -d "$HOME/.cache/ccache" ] || export CCACHE_DISABLE=1
CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1
export CCACHE_BASEDIR CCACHE_NOHASHDIR
cuda=OFF launcher=''
for unit; do [ ! -d "$here/$unit/src/backends/cuda" ] || cuda=ON; done
if [ -n "${OBJECTS:-}" ] && command -v ninja >/dev/null 2>&1; then
  for unit; do cat "$here/$unit/line" "$here/$unit/fixture/line" 2>/dev/null || true; done | sed 's/ .*//; s#.*/##' | sort -u >"$copy/lists"
  # Names of files, not paths: an object too many that is compiled is no harm.
  ninja -C "$OBJECTS" -t deps 2>/dev/null | awk -v build="$(cd "$OBJECTS" && pwd)/" '
    NR == FNR { list[$1] = 1; next }
    /^[^ ]/ { if (same) print object; object = $1; sub(/:$/, "", object); same = /\(VALID\)/; next }
    NF { file = $1; sub(/.*\//, "", file)
      own = index($1, build) == 1 || ($1 !~ /^\// && $1 !~ /^\.\.\//)
      if (own || file in list) same = 0 }
    END { if (same) print object }' "$copy/lists" - >"$copy/same"
  # In place of the compiler: its object, if there is one, and a depfile that names nothing.
  cat >"$copy/launcher" <<'SH'
#!/bin/sh
object='' depfile='' word=''
for a; do
  case $word in -o) object=$a ;; -MF) depfile=$a ;; esac
  word=$a
done
case $object in
*.o) if grep -qxF -- "$object" "$SAME" && cp "$OBJECTS/$object" "$object"; then echo "$object:" >"$depfile"; exit; fi ;;
esac
exec "$@"
SH
  chmod +x "$copy/launcher"
  SAME=$copy/same launcher=-DCCACHE=$copy/launcher
  cuda=$(sed -n 's/^HONE_CUDA:BOOL=//p' "$OBJECTS/CMakeCache.txt")
  export OBJECTS SAME
fi
# shellcheck disable=SC2086 # words
cmake -S "$copy/tree" --preset release -B "$copy/tree/build" -DHONE_CUDA=$cuda -DCMAKE_C_FLAGS_RELEASE=-O0 $launcher >"$copy/log" 2>&1 &&
  cmake --build "$copy/tree/build" --target hone_cli hone_operators $targets >>"$copy/log" 2>&1 || { tail -40 "$copy/log"; exit 1; }
BUILD=$copy/tree/build TREE=$copy/tree
export BUILD TREE
failed=0
for unit; do
  mkdir "$copy/$unit"
  status=0
  (cd "$copy/$unit" && sh -ex "$here/$unit/check.sh") >"$copy/log" 2>&1 || status=$?
  if [ $status = 0 ]; then
    echo "ok      $unit: $(cut -d' ' -f2- "$here/$unit/line")"
  elif [ $status = 77 ]; then
    echo "SKIP    $unit: $(grep '^SKIP' "$copy/log")"
  else
    echo "FAIL: $unit"
    tail -20 "$copy/log" | cut -c1-300
    failed=1
  fi
done
exit $failed
