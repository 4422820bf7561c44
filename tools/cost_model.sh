#!/bin/sh
# Do untuned plans choose as measuring does? Runs `hone tune --check` on models in every instruction tier of this machine and
# adds up. usage: tools/cost_model.sh HONE [-t THREADS] [-o FOLDER] MODEL...
# -o keeps each run's JSON. Exit code 1 when a tier agrees on fewer than 80 % of the steps that have two tactics more than 10 % apart.
set -eu
hone=$1
shift
threads=2 folder=
while [ $# -gt 0 ]; do
  case $1 in
  -t) threads=$2; shift 2 ;;
  -o) folder=$2; shift 2 ;;
  *) break ;;
  esac
done
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
[ -n "$folder" ] && mkdir -p "$folder" || folder=$temp
bad=0
for tier in ${TIERS:-amx avx512 avx2}; do
  sum_agree=0 sum_contested=0
  for model in "$@"; do
    name=$(basename "$model" .onnx)
    code=0
    HONE_CPU=$tier "$hone" tune "$model" -t "$threads" --check --json --cache "$temp/none/$tier-$name" >"$folder/$tier-$name.json" 2>"$temp/err" || code=$?
    if [ $code -gt 1 ]; then
      printf '%-8s %-28s failed: %s\n' "$tier" "$name" "$(tail -1 "$temp/err")"
      bad=1
      continue
    fi
    agree=$(awk -F'[:,]' '/"agree":/ {print $2 + 0}' "$folder/$tier-$name.json")
    contested=$(awk -F'[:,]' '/"contested":/ {print $2 + 0}' "$folder/$tier-$name.json")
    printf '%-8s %-28s %3d of %3d\n' "$tier" "$name" "$agree" "$contested"
    sum_agree=$((sum_agree + agree)) sum_contested=$((sum_contested + contested))
  done
  printf '%-8s %-28s %3d of %3d = %d %%\n' "$tier" "all" "$sum_agree" "$sum_contested" \
    $((sum_contested ? 100 * sum_agree / sum_contested : 100))
  [ $((sum_agree * 100)) -ge $((sum_contested * 80)) ] || bad=1
done
exit $bad
