#!/bin/sh
# Real gates, not replayed ones: COUNT times the same command on both sides (A/A), and COUNT times a new one that does 5 % more work
# (the same network, more runs in a process; the whole process is timed). The extra work is found by measuring, so that it is 5 % of the
# process and not of its runs alone.
# usage: bench/gate/real.sh HONE [COUNT]       prints a line a gate and a Markdown summary
set -eu
hone=$(realpath "$1") count=${2:-20}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$hone" zoo resnet50 --width 0.25 --size 64 -o "$work/m.onnx" >/dev/null 2>&1
process() { echo "$hone bench $work/m.onnx -t 1 -n $1 -w 5 --no-cache"; }
# Median milliseconds of nine processes with $1 runs.
wall() {
  for _ in 1 2 3 4 5 6 7 8 9; do
    a=$(date +%s%N)
    $(process "$1") >/dev/null 2>&1
    b=$(date +%s%N)
    echo $(((b - a) / 1000))
  done | sort -g | awk 'NR == 5 { print $1 / 1000 }'
}
runs=240
short=$(wall $runs) long=$(wall $((2 * runs)))
more=$(awk -v n=$runs -v s="$short" -v l="$long" 'BEGIN { printf "%d", n + 0.05 * s / ((l - s) / n) + 0.5 }')
echo "$runs runs: $short ms a process, $((2 * runs)): $long ms; 5 % more work: $more runs" >&2
gate() { # name, runs of the new one
  code=0
  "$hone" gate --metric wall --baseline-cmd "$(process $runs)" --candidate-cmd "$(process "$2")" --json >"$work/gate.json" 2>/dev/null || code=$?
  awk -v name="$1" -v code=$code '
    /"verdict"/ { gsub(/[",]/, ""); sub(/.*verdict: /, ""); v = $0 }
    /"change_pct"/ { gsub(/,/, ""); c = $2 } /"noise_pct"/ { gsub(/,/, ""); n = $2 } /"pairs"/ { gsub(/,/, ""); p = $2 }
    END { printf "%s: %s (exit %d), %+.2f %%, %d pairs, noise %.2f %%\n", name, v, code, c, p, n }' "$work/gate.json"
}
i=0
while [ $i -lt "$count" ]; do
  gate A/A $runs
  gate +5% "$more"
  i=$((i + 1))
done | tee "$work/all"
awk '
  { k = index($0, "+5%:") == 1 ? "+5 % work" : "A/A"; cases[k]++; v = $2; if (v == "no") v = "no verdict"; count[k, v]++ }
  END {
    print "\n| | gates | same or better | worse | no verdict |\n|---|---:|---:|---:|---:|"
    for (i = 0; i < 2; i++) { k = i ? "+5 % work" : "A/A"
      printf "| %s | %d | %d | %d | %d |\n", k, cases[k], count[k, "same"] + count[k, "better"], count[k, "worse"], count[k, "no verdict"] }
  }' "$work/all"
