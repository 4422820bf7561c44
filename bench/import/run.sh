#!/bin/sh
# Speed and memory of importing large files: samples grown to MB (520) megabytes, then `hone diagnose`, from where the file
# begins to the printed findings. Exit 1 when an import fails or needs more than 200 MB (ONNX Runtime, which keeps a million events
# at most and all of them count: 256 MB). Arguments: build folder, samples of PyTorch (without them: samples of every tool whose
# files get large).
set -eu
cd "$(dirname "$0")/../.."
build=$1
shift
mb=${MB:-520}
work=$build/bench-import
data=tests/importers/data
shared=${HONE_SHARED:-../shared}/cases/profiles
mkdir -p "$work"
failed=0

# FILE LIMIT_MB
measure() {
  cat "$1" >/dev/null # from the page cache, so that the importer is measured and not the disk
  "$build/import_bench" run "$2" "$build/hone" "$1" || failed=1
}

# SAMPLE MB LIMIT_MB: grows a sample, measures it under its own name, and leaves it for more.
trace() {
  grown=$work/$(basename "$1" .gz)
  "$build/import_bench" grow "$1" "$2" "$grown"
  measure "$grown" "$3"
}

# An Nsight Systems database of 2^20 kernels, their calls and 2^10 ranges.
database() {
  sqlite3 "$1" <<'SQL'
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES(1,'sgemm_128x64_nn'),(2,'relu_kernel'),(3,'cudaLaunchKernel_v7000');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
  blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER,
  nameId INTEGER, returnValue INTEGER);
CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER);
BEGIN;
WITH RECURSIVE i(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM i WHERE k < 1048575)
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT k * 1000 + 500, k * 1000 + 1400, 0, 1, 7, k + 1, 16777216, 1 + k % 2, 1 + k % 2,
  64, 1, 1, 128, 1, 1, 32, 0, 1024 FROM i;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT start - 400, start - 200, 0, 16777217, correlationId, 3, 0
  FROM CUPTI_ACTIVITY_KIND_KERNEL;
INSERT INTO NVTX_EVENTS SELECT start - 500, start + 1023500, 59, 'iteration ' || correlationId / 1024, 16777217, NULL
  FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId % 1024 = 1;
COMMIT;
SQL
}

echo "| file | MB | s | MB/s | peak MB |"
echo "|---|---|---|---|---|"
if [ $# -gt 0 ]; then
  for sample in "$@"; do
    trace "$sample" "$mb" 200
    rm -f "$grown"
  done
else
  for sample in $data/pytorch/gpu.json $data/pytorch/cpu.json "$shared/pytorch/kineto_alexnet.json.gz"; do
    [ -f "$sample" ] || continue
    trace "$sample" "$mb" 200
    [ "$sample" = $data/pytorch/gpu.json ] && gzip -1 -c "$grown" >"$grown.gz" && measure "$grown.gz" 200
    rm -f "$grown" "$grown.gz"
  done
  # ONNX Runtime stops at a million events, which is about this size.
  trace $data/onnxruntime/cpu_new.json 380 256
  rm -f "$grown"
  trace $data/ascend/msprof_1.json "$mb" 200
  rm -f "$grown"
  if command -v sqlite3 >/dev/null; then
    database "$work/nsys.sqlite"
    measure "$work/nsys.sqlite" 200
  fi
fi
rm -rf "$work"
exit $failed
