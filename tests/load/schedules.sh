#!/bin/sh
# Schedules of hone against those of the wheel mlcommons-loadgen. SKIP where it is not installed: HONE_PYTHON names a
# python that has it. Usage: schedules.sh BUILD
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for python in ${HONE_PYTHON:-} "$here/../../../venv/bin/python" "$here/../../../../venv/bin/python" python3; do
  if "$python" -c 'import mlperf_loadgen' 2>/dev/null; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    "$python" "$here/schedules.py" "$1/load_schedule" "$folder"
    exit
  fi
done
echo "SKIP: no python with mlcommons-loadgen (HONE_PYTHON)"
exit 77
