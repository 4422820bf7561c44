#!/bin/sh
# Real profiles of trtexec, ONNX Runtime and Ascend: what hone makes of them against sums that jq and awk take
# from the files themselves. Usage: samples.sh HONE
set -eu
hone=$1
samples=${HONE_SHARED:-../shared}/cases/profiles
[ -d "$samples" ] || { echo "SKIP: no samples in $samples"; exit 77; }
command -v jq >/dev/null || { echo "SKIP: no jq"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# same WHAT HONE'S INDEPENDENT [TOLERANCE]
same() {
  if awk -v a="$2" -v b="$3" -v t="${4:-1e-6}" 'BEGIN { d = a - b; if (d < 0) d = -d; m = b < 0 ? -b : b; exit !(d <= t * (m > 1e-9 ? m : 1)) }'; then
    echo "ok   $1: $2"
  else
    echo "FAIL $1: hone says $2, the file $3"
    bad=1
  fi
}
facts() { "$hone" report "$@" --json >"$work/facts.json"; }
# Microseconds of the spans of these kinds; jq's numbers are too short for time stamps since 1970.
durations() {
  grep -E "\"kind\":\"($1)\".*\"iteration\"" "$work/facts.json" |
    sed -n 's/.*"start_ns":\([0-9]*\),"end_ns":\([0-9]*\).*/\1 \2/p' >"$work/spans"
  total=0
  while read -r start end; do total=$((total + end - start)); done <"$work/spans"
  awk -v t="$total" 'BEGIN { printf "%.3f", t / 1000 }'
}
ask() { jq -r "$1" "$work/facts.json"; }

t=$samples/tensorrt
facts "$t"/resnet18_A100_fp32.profile.json "$t"/resnet18_A100_fp32.graph.json "$t"/resnet18_A100_fp32.timing.json
same "resnet18 layers" "$(ask '[.layers[].time_ms] | add')" "$(jq '[.[1:][].averageMs] | add' "$t"/resnet18_A100_fp32.profile.json)"
same "resnet18 number of layers" "$(ask '.layers | length')" "$(jq 'length - 1' "$t"/resnet18_A100_fp32.profile.json)"
same "resnet18 shares" "$(ask '[.layers[].pct] | add')" 100
runs='[.[] | select(.startComputeMs >= 200)]' # the first 200 ms warm up
same "resnet18 runs" "$(ask .latency_ms.count)" "$(jq "$runs | length" "$t"/resnet18_A100_fp32.timing.json)"
same "resnet18 latency" "$(ask .latency_ms.mean)" "$(jq "$runs | [.[].latencyMs] | add / length" "$t"/resnet18_A100_fp32.timing.json)"
same "resnet18 warm-ups" "$(ask .meta.warmups)" "$(jq '[.[] | select(.startComputeMs < 200)] | length' "$t"/resnet18_A100_fp32.timing.json)"
same "resnet18 reformats" "$(ask '[.steps[] | select(.is_reformat)] | length')" \
  "$(jq '[.Layers[] | select(.LayerType == "Reformat" or (.Name | startswith("Reformatting")))] | length' "$t"/resnet18_A100_fp32.graph.json)"
same "resnet18 output channels" "$(ask '[.steps[].channels_out // 0] | add')" "$(jq '[.Layers[].OutMaps // 0] | add' "$t"/resnet18_A100_fp32.graph.json)"

facts "$t"/mobilenet.qat.*.json
same "mobilenet layers" "$(ask '[.layers[] | select(.kind != "run") | .time_ms] | add')" "$(jq '.[0].count as $n | [.[1:][].timeMs] | add / $n' "$t"/mobilenet.qat.profile.json)"
same "mobilenet medians" "$(ask '[.layers[].p50_ms // 0] | add')" "$(jq '[.[1:][].medianMs] | add' "$t"/mobilenet.qat.profile.json)"
same "mobilenet latency" "$(ask .latency_ms.mean)" "$(jq '.performance_summary.Latency[2]' "$t"/mobilenet.qat.profile.metadata.json)"
same "mobilenet quantised" "$(ask '[.steps[] | select(.dtype == "i8")] | length')" \
  "$(jq '[.Layers[] | select(.Inputs[0]["Format/Datatype"] | test("Int8"))] | length' "$t"/mobilenet.qat.graph.json)"

# Weights' and outputs' shapes give the same FLOPs as the weights' count and the output's size.
same "mobilenet FLOPs" "$(ask '[.steps[].flops // 0] | add')" \
  "$(jq '[.Layers[] | select(.ParameterType == "Convolution") | 2 * .Weights.Count * .Outputs[0].Dimensions[2] * .Outputs[0].Dimensions[3]] | add' "$t"/mobilenet.qat.graph.json)"

for f in "$samples"/onnxruntime/*.json; do
  n=$(basename "$f")
  facts "$f"
  kernels='[.[] | select(.cat == "Node" and (.name | endswith("_kernel_time")))]'
  count=$(jq '[.[] | select(.name == "model_run")] | length' "$f")
  same "$n runs" "$(ask .latency_ms.count)" "$count"
  same "$n nodes" "$(ask '[.layers[] | select(.type != "host") | .time_ms] | add')" "$(jq "$kernels | ([.[].dur] | add) / 1000 / $count" "$f")"
  same "$n number of nodes" "$(ask '.nodes | length')" "$(jq "$kernels | [.[].name] | unique | length" "$f")"
  same "$n latency" "$(ask .latency_ms.mean)" "$(jq '[.[] | select(.name == "model_run") | .dur] | add / length / 1000' "$f")" 1e-3
  same "$n loading" "$(ask .meta.load_ms)" "$(jq '[.[] | select(.name == "session_initialization" or (.name | startswith("model_loading"))) | .dur] | add / 1000' "$f")"
done

a=$samples/ascend
facts "$a"/kernel_details_a.csv
# Some tasks stand there twice (same stream, name, start and duration).
same "kernel_details durations" "$(durations 'kernel')" \
  "$(awk -F, 'NR > 1 && !seen[$4, $5, $9, $10]++ { s += $10 } END { printf "%.6f", s }' "$a"/kernel_details_a.csv)"
same "kernel_details rows" "$(ask '[.spans[] | select(.kind != "run")] | length')" "$(awk -F, 'NR > 1 && !seen[$4, $5, $9, $10]++ { n++ } END { print n }' "$a"/kernel_details_a.csv)"
same "kernel_details bytes of a MatMul" "$(ask '[.steps[] | select(.name == "aclnnMatmul_MatMulCommon_MatMulV2") | .bytes][0]')" \
  $((2 * (81920 * 4096 + 8192 * 512 + 4096 * 512)))
facts "$a"/trace_view.json
same "trace_view device work" "$(durations 'kernel|reformat|copy|copy_h2d|copy_d2h')" \
  "$(jq '[.[] | select(.ph == "X" and .args["Task Type"] != null) | .dur] | add' "$a"/trace_view.json)" 1e-4
exit $bad
