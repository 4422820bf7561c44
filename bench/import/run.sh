#!/bin/sh
# Speed and memory of importing large traces: samples grown to MB (520) megabytes, then `hone diagnose`, from where the file
# begins to the printed findings. Exit 1 when an import fails or needs more than 200 MB. Arguments: build folder, samples.
set -eu
cd "$(dirname "$0")/../.."
build=$1
shift
mb=${MB:-520}
[ $# -gt 0 ] || set -- tests/importers/data/pytorch/gpu.json tests/importers/data/pytorch/cpu.json
for sample in "${HONE_SHARED:-../shared}"/cases/profiles/pytorch/kineto_alexnet.json.gz; do
  [ -f "$sample" ] && set -- "$@" "$sample"
done
work=$build/bench-import
mkdir -p "$work"
failed=0
echo "| trace | MB | s | MB/s | peak MB |"
echo "|---|---|---|---|---|"
for sample in "$@"; do
  name=$(basename "$sample" .gz)
  "$build/import_bench" grow "$sample" "$mb" "$work/$name"
  cat "$work/$name" >/dev/null # from the page cache, so that the importer is measured and not the disk
  "$build/import_bench" run 200 "$build/hone" "$work/$name" || failed=1
  rm -f "$work/$name"
done
rmdir "$work"
exit $failed
