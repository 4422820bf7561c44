#!/bin/sh
# usage: profile.sh HONE MODEL   A profile on the (emulated) GPU: its terms add up to the outer clock within 2 %, every step has a span, the
# roofs are the device's, and the record doubts nothing. Traces come from events where there is no CUPTI.
set -eu
temp=$(mktemp)
trap 'rm -f "$temp"' EXIT
value() { sed -n "s/.*\"$1\": *\([^,}]*\).*/\1/p" "$temp" | head -1; }
# Time that a busy machine takes away between the two clocks is in the residual rightly; it does not take it from every profile.
adds_up() {
  "$1" profile "$2" --device cuda -n 8 --json >"$temp" || return 1
  residual=$(value residual_pct)
  echo "residual $residual %, doubt $(value doubt), clock $(value inner_clock)"
  awk -v r="$residual" 'BEGIN { exit !(r < 2 && r > -2) }' || return 1
  # An emulator's roofs are no peaks: it multiplies slower than it adds.
  case $(value doubt) in null | *"measured peak"*) ;; *) return 1 ;; esac
}
tries=10
until adds_up "$@"; do
  tries=$((tries - 1))
  test $tries -gt 0
done
grep -q '"kind": *"copy_h2d"' "$temp"
grep -q 'CUDA events' "$temp"
grep -q '"backend": *"cuda"' "$temp"
# Memory is the device's; the host's stands beside it. The copies to the device are measured.
"$1" bench "$2" --device cuda -n 3 --json >"$temp"
echo "device $(value memory_peak_mb) MiB, host $(value host_rss_peak_mb) MiB, copies $(value h2d_ms_ratio)"
grep -q '"memory_peak_source": *"memory of the device"' "$temp"
awk -v d="$(value memory_peak_mb)" -v h="$(value host_rss_peak_mb)" -v c="$(value h2d_ms_ratio)" 'BEGIN { exit !(d > 0 && d != h && h > 0 && c > 0) }'
