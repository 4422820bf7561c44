#!/bin/sh
# Records how much equal runs differ on this machine: medians of many processes of `hone bench` on the same network, one after
# another, as the gate would run them; each divided by the median of all. One number a line, after comments that say how and where.
# usage: bench/gate/record.sh HONE COUNT FILE [neighbour]
# neighbour: another process computes meanwhile, half a second on and half a second off on average, at random.
set -eu
hone=$1 count=$2 out=$3 neighbour=${4:-}
work=$(mktemp -d)
burner=
trap 'rm -rf "$work"; [ -z "$burner" ] || kill $burner 2>/dev/null || true' EXIT
"$hone" zoo resnet50 --width 0.25 --size 64 -o "$work/m.onnx" >/dev/null 2>&1
if [ -n "$neighbour" ]; then
  awk 'BEGIN { srand(7); while (1) { n = int(rand() * 3e7); for (i = 0; i < n; i++) x += i; system("sleep " rand()); } }' &
  burner=$!
fi
i=0
while [ "$i" -lt "$count" ]; do
  "$hone" bench "$work/m.onnx" -t 1 -n 20 -w 5 --no-cache --json 2>/dev/null | awk '/"median_latency_ms"/ { gsub(/[ ,]/, ""); sub(/.*:/, ""); print }'
  i=$((i + 1))
done >"$work/all"
median=$(sort -g "$work/all" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }')
{
  echo "# Medians of $count processes of: hone bench resnet50 (width 0.25, 64x64) -t 1 -n 20 -w 5, one after another${neighbour:+, beside a busy neighbour};"
  echo "# relative to their median, $median ms. $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) processors, $(date -u +%Y-%m-%d)."
  awk -v m="$median" '{ printf "%.5f\n", $1 / m }' "$work/all"
} >"$out"
awk '!/^#/ { n++; s += $1; q += $1 * $1 } END { m = s / n; printf "%d runs, mean %.4f of the median, CV %.2f %%\n", n, m, 100 * sqrt(q / n - m * m) / m }' "$out"
