#!/bin/sh
# Every command of hone that a finding may name exists with the options it is named with; hone amdahl, --threshold and --lang do what they say.
# usage: commands.sh HONE
set -eu
hone=$1
bad=0
fail() { echo "$*"; bad=1; }

# ---- actions.def: "hone CMD ARGUMENT... --option" must parse
grep -o '"hone [^"]*"' src/insight/diagnose/actions.def | tr -d '"' | sort -u >"${TMPDIR:-/tmp}/hone-actions.$$"
trap 'rm -f "${TMPDIR:-/tmp}/hone-actions.$$"' EXIT
count=0
while read -r _ command rest; do
  help=$("$hone" "$command" --help) || { fail "hone $command does not exist"; continue; }
  count=$((count + 1))
  for word in $rest; do
    case $word in
    -*) echo "$help" | grep -qE -- "(^| |,)$word( |,|\$)" || fail "hone $command has no $word" ;;
    esac
  done
done <"${TMPDIR:-/tmp}/hone-actions.$$"
[ "$count" -gt 10 ] || fail "only $count commands found in actions.def"

# ---- and the options of a profiled run that a command repeats
sed -n 's/^COMMAND(\([a-z]*\), "\(.*\)")$/\1 \2/p' src/insight/diagnose/actions.def >"${TMPDIR:-/tmp}/hone-actions.$$"
[ "$(wc -l <"${TMPDIR:-/tmp}/hone-actions.$$")" -ge 6 ] || fail "actions.def names fewer commands than expected"
while read -r command rest; do
  help=$("$hone" "$command" --help)
  for word in $rest; do
    echo "$help" | grep -qE -- "--$word( |\$)" || fail "hone $command has no --$word"
  done
done <"${TMPDIR:-/tmp}/hone-actions.$$"

# ---- amdahl: the seed's case, 123 -> 141 TOPS on 10 and 15 % of the time
"$hone" amdahl -p 0.1 -s 1.146 | grep -q '= 1.0129 ' || fail "amdahl: P 0.1, S 1.146"
"$hone" amdahl -p 0.15 -s 1.146 --json | grep -q '"speedup": 1.0194' || fail "amdahl: P 0.15 as JSON"
for wrong in "" "-p 0.1" "-s 2" "-p 1.1 -s 2" "-p 0.5 -s 0" "-p 0.1 -s 2 none.json" "none.json -s 2"; do
  code=0
  # shellcheck disable=SC2086
  "$hone" amdahl $wrong >/dev/null 2>&1 || code=$?
  [ "$code" = 2 ] || fail "amdahl $wrong: exit $code, not 2"
done

# ---- thresholds and language
facts=tests/rules/slow_post.facts.json
[ "$("$hone" diagnose --thresholds | wc -l)" -ge 50 ] || fail "diagnose --thresholds is short"
"$hone" diagnose --thresholds --threshold idle_share=3.25 | grep -q '^idle_share *3.25 ' || fail "an override does not show"
"$hone" diagnose $facts --json | grep -q '"slow_post"' || fail "slow_post is not found"
"$hone" diagnose $facts --json --threshold post_share=99 | grep -q '"slow_post"' && fail "post_share=99 does not silence slow_post"
code=0
"$hone" diagnose $facts --threshold post_share >/dev/null 2>&1 || code=$?
[ "$code" = 2 ] || fail "--threshold without a value: exit $code"
"$hone" diagnose $facts --lang zh | grep -q '后处理' || fail "--lang zh is not Chinese"
LC_ALL=C.UTF-8 "$hone" diagnose $facts | grep -q 'Post-processing' || fail "C.UTF-8 is not English"
# A locale need not be installed: its name says it.
env -u LC_ALL -u LC_MESSAGES -u LC_CTYPE LANG=zh_CN.UTF-8 "$hone" diagnose $facts | grep -q '后处理' || fail "LANG=zh_CN.UTF-8 is not Chinese"
env -u LC_ALL -u LC_MESSAGES -u LC_CTYPE LANG=zh_CN.GB2312 "$hone" diagnose $facts | grep -q 'Post-processing' || fail "GB2312 is written as UTF-8"
"$hone" report $facts --lang zh | grep -q '后处理' || fail "report --lang zh is not Chinese"
"$hone" report $facts --threshold post_share=99 --json | grep -q '"slow_post"' && fail "report ignores --threshold"
# The text has what the JSON has: subject, where it was measured, the range.
"$hone" diagnose $facts --lang en | tr '\n' ' ' | grep -qE 'concerns .*\(exclusive wall.*predicted \+[0-9.]+ % \([0-9.]+ to [0-9.]+ %\)' || fail "a finding's text lacks a field"
code=0
"$hone" diagnose $facts --lang fr >/dev/null 2>&1 || code=$?
[ "$code" = 2 ] || fail "--lang fr: exit $code"
"$hone" amdahl $facts --layers Conv -s 2 | grep -q 'P = 0.5' || fail "amdahl of a profile"

# ---- a record that lies: gaps of which three fill 64 bits of nanoseconds, options that are none or would run something
lie=${TMPDIR:-/tmp}/hone-lie.$$.json
trap 'rm -f "${TMPDIR:-/tmp}/hone-actions.$$" "$lie" "$lie.out"' EXIT
far=2305843009213693950
{
  printf '{"schema":"hone facts","version":1,"meta":{"tool":"hone","model":"m.onnx","backend":"cpu","runs":3,"batch":1},'
  printf '"options":[{"what":"","value":"x"},{"what":"threads batch","value":"3"},{"what":"shape","value":"x=1'"'"'; rm -rf ~"}],'
  printf '"steps":[{"name":"a","op_type":"Conv"},{"name":"b","op_type":"Conv"}],"spans":['
  for run in 0 1 2; do
    id=$((3 * run + 1))
    printf '{"id":%d,"kind":"run","start_ns":-%s,"end_ns":%s,"iteration":%d},' $id $far $far $run
    printf '{"id":%d,"parent":%d,"kind":"kernel","start_ns":-%s,"end_ns":-%s,"iteration":%d,"step":0,"name":"a"},' $((id + 1)) $id $far $((far - 9)) $run
    printf '{"id":%d,"parent":%d,"kind":"kernel","start_ns":%s,"end_ns":%s,"iteration":%d,"step":1,"name":"b"}' $((id + 2)) $id $((far - 9)) $far $run
    [ $run = 2 ] || printf ,
  done
  printf ']}'
} >"$lie"
"$hone" diagnose "$lie" --json >"$lie.out" || fail "a record that lies cannot be diagnosed"
grep -q '"beside":\["a","b"\]' "$lie.out" || fail "the gap's neighbours are not named"
grep -qF "hone profile m.onnx --shape 'x=1'\\\\''; rm -rf ~' --trace" "$lie.out" || fail "options of a record that lies: $(grep -o '"commands":[^]]*' "$lie.out")"
exit $bad
