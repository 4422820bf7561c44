#!/bin/sh
# page.sh INSIGHT_SAMPLE: opens the report page in a headless browser and checks what a reader would see. With HONE_BROWSER=none
# the pages are only written.
set -u
sample=$1
browser=${HONE_BROWSER:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)} || {
  echo "SKIP: no chromium on this machine"
  exit 77
}
dir=$(mktemp -d) || exit 1
export HOME="$dir" # browsers write there
trap 'rm -rf "$dir"' EXIT
"$sample" "$dir" >/dev/null || { echo "the sample reports could not be written"; exit 1; }
[ "$browser" = none ] && { echo "written"; exit 0; }
bad=0
fail() { echo "FAIL: $*"; bad=1; }

# Everything that the page says has its Chinese: words.js is the one table.
assets=src/insight/report/assets
grep -ho "hone\.say('[^']*'" $assets/*.js | sed "s/hone\.say('//; s/'$//" | sort -u >"$dir/said"
grep -ho "\(title\|sub\): '[^']*'" $assets/*.js | sed "s/[a-z]*: '//; s/'$//" >>"$dir/said"
[ "$(wc -l <"$dir/said")" -ge 100 ] || fail "only $(wc -l <"$dir/said") texts of the page found"
while IFS= read -r words; do
  grep -qF -e "'$words': '" -e " $words: '" $assets/words.js || grep -qF -e "'$words':" $assets/words.js || fail "words.js lacks '$words'"
done <"$dir/said"

# open NAME URL SIZE: the page after its scripts ran, and everything it said to the console.
open_page() {
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
    --user-data-dir="$dir/profile" --window-size="$3" --virtual-time-budget=4000 --enable-logging=stderr --v=0 --dump-dom \
    "$2" >"$dir/$1.dom" 2>"$dir/$1.log"
  [ -s "$dir/$1.dom" ] || fail "$1: the browser gave nothing back"
  grep CONSOLE "$dir/$1.log" && fail "$1: the console is not silent"
  grep -q 'data-ready="yes"' "$dir/$1.dom" || fail "$1: the page did not finish"
}


check_common() {
  for id in breakdown findings timeline layers roofline memory run; do
    grep -q "class=\"panel\" id=\"$id\"" "$dir/$1.dom" || fail "$1: panel $id is missing"
  done
  grep -q 'class="empty bad"' "$dir/$1.dom" && fail "$1: a panel could not be drawn"
  drawn=$(grep -o 'data-drawn="[0-9]*"' "$dir/$1.dom" | tr -dc 0-9)
  [ "${drawn:-0}" -ge "$2" ] || fail "$1: the timeline drew ${drawn:-no} spans, not $2"
  points=$(grep -o 'class="point"' "$dir/$1.dom" | wc -l)
  [ "$points" -ge 50 ] || fail "$1: the roofline has $points points"
  [ "$(grep -o 'class="roof"' "$dir/$1.dom" | wc -l)" -ge 4 ] || fail "$1: roofs are missing"
  [ "$(grep -o 'class="layer"' "$dir/$1.dom" | wc -l)" -ge 15 ] || fail "$1: layer bars are missing"
  grep -q 'class="peak"' "$dir/$1.dom" || fail "$1: the memory chart is empty"
  # The hostile name stands there as text: escaped by the serialiser, never as an element.
  grep -q '&lt;script&gt;alert(1)&lt;/script&gt;' "$dir/$1.dom" || fail "$1: the hostile name is not shown as text"
  tags=$(grep -o '<script' "$dir/$1.dom" | wc -l)
  [ "$tags" -eq 2 ] || fail "$1: $tags script elements instead of 2"
}

open_page wide "file://$dir/report.html#theme=light" 1280,2000
check_common wide 200
grep -q 'id="before-after"' "$dir/wide.dom" || fail "before and after is missing"
grep -q 'id="comparison"' "$dir/wide.dom" || fail "what changed is missing"
[ "$(grep -o 'class="change"' "$dir/wide.dom" | wc -l)" -ge 15 ] || fail "rows of what changed are missing"
grep -q 'fused 3' "$dir/wide.dom" || fail "the comparison shows no fusion of three steps"
[ "$(grep -o 'class="finding ' "$dir/wide.dom" | wc -l)" -ge 2 ] || fail "findings are missing"
for words in 'confidence [0-9]+ %' 'class="source"' 'class="subject"'; do
  grep -Eq "$words" "$dir/wide.dom" || fail "findings lack $words"
done
open_page narrow "file://$dir/report.html#theme=dark" 390,2000
check_common narrow 200
grep -q 'data-theme="dark"' "$dir/narrow.dom" || fail "the dark theme was not taken"
open_page single "file://$dir/single.html" 1280,2000
check_common single 50
grep -q 'id="comparison"' "$dir/single.dom" && fail "a single profile shows a comparison"
grep -q 'id="before-after"' "$dir/single.dom" && fail "a single profile shows a before and after"
# A finding that has the focus lights up its rows, the spans, and the gaps that it is about.
grep -q '"beside":\["' "$dir/gaps.html" || fail "the sample with gaps has no finding about them"
sed 's|</body>|<script>addEventListener("load", () => setTimeout(() => [...document.querySelectorAll(".finding")].find((f) => f.textContent.includes("空闲")).focus(), 200));</script></body>|' \
  "$dir/gaps.html" >"$dir/focus.html"
open_page focus "file://$dir/focus.html" 1280,2000
[ "$(grep -o 'class="layer lit"' "$dir/focus.dom" | wc -l)" -ge 2 ] || fail "the steps beside a gap are not marked"
grep -Eq 'data-lit="[1-9][0-9]*" data-gaps="[1-9]' "$dir/focus.dom" || fail "the gap is not marked in the timeline"
# Hardware counters stand in a panel where there are any.
grep -q 'id="counters"' "$dir/single.dom" && fail "a panel of counters without any"
[ "$(grep -o 'class="counted"' "$dir/focus.dom" | wc -l)" -eq 3 ] || fail "the rows of hardware counters are missing"
grep -q '77 %' "$dir/focus.dom" || fail "a hit rate is missing"
# In Chinese nothing of the page's own is left in English.
for words in '发现' '时间线' '如何测量' '受限于'; do grep -q "$words" "$dir/focus.dom" || fail "the Chinese page lacks $words"; done
grep -q '<html lang="zh"' "$dir/focus.dom" || fail "the Chinese page does not say its language"
grep -Eq '<h2>[A-Za-z ]*</h2>' "$dir/focus.dom" && fail "a heading of the Chinese page is English"
[ $bad -eq 0 ] && echo "the page renders: wide, narrow, single"
exit $bad
