#!/bin/sh
# usage: counters.sh HONE   hone profile --filter on the (emulated) GPU with a range profiler that tells: counters of the chosen layers alone decide
# their bounds, in the text as in the JSON, and diagnose reads them from the file; where the driver refuses, the report says so.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export HONE_TRACE=events
"$1" zoo res3_conv3 --size 8 -o "$temp/m.onnx" >/dev/null
peak=avg.pct_of_peak_sustained_elapsed
export HONE_FAKE_METRICS="sm__throughput.$peak=72;gpu__compute_memory_throughput.$peak=31;lts__t_sector_hit_rate.pct=64"
"$1" profile "$temp/m.onnx" --device cuda -n 3 --filter Conv -o "$temp/p.json" >"$temp/text"
grep -q 'Hardware counters (1)' "$temp/text" || { cat "$temp/text"; exit 1; }
grep -q 'not measured: dram_pct_of_peak' "$temp/text"
jq -e '[.layers[] | select(.type == "Conv")] | length > 0 and all(.[]; .bound == "compute" and .bound_source == "counters" and .counters.l2_hit_pct == 64)' \
  "$temp/p.json" >/dev/null
jq -e '. as $d | [.counters[] | select(.name == "compute_pct_of_peak") | .step] | length == 1 and all(.[]; $d.steps[.].op_type == "Conv")' "$temp/p.json" >/dev/null
"$1" diagnose "$temp/p.json" >"$temp/text"
grep -q 'Hardware counters (1)' "$temp/text"
HONE_FAKE_METRICS=refuse "$1" profile "$temp/m.onnx" --device cuda -n 3 --filter Conv >"$temp/text"
grep -q 'not measured: hardware counters (CUPTI refuses' "$temp/text" || { cat "$temp/text"; exit 1; }
