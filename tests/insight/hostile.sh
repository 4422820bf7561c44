#!/bin/sh
# hostile.sh INSIGHT_HOSTILE INSIGHT_SAMPLE STRINGS: every string that could run a script, in every text field of a report, opened in
# a headless browser: nothing runs, nothing is requested, no element appears that the page did not make. Then width and keyboard.
# With HONE_BROWSER=none the reports are only written.
set -u
hostile=$1 sample=$2 strings=$3
browser=${HONE_BROWSER:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)} || {
  echo "SKIP: no chromium on this machine"
  exit 77
}
dir=$(mktemp -d) || exit 1
export HOME="$dir" # browsers write there
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "FAIL: $*"; bad=1; }
"$hostile" "$strings" "$dir" >"$dir/said" || { cat "$dir/said"; echo "the hostile report could not be written"; exit 1; }
"$sample" "$dir" >/dev/null || exit 1
[ "$browser" = none ] && { cat "$dir/said"; exit 0; }

# probe FILE: the page with one more script (probe.html).
probe() {
  awk -v probe="$(dirname "$strings")/probe.html" '/^<\/body>/ { while ((getline line < probe) > 0) print line } { print }' "$1" >"$1.probe.html"
}
browse() { # url, log: the page after its scripts ran
  timeout 90 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --allow-file-access-from-files \
    --user-data-dir="$dir/profile" --window-size=1280,2000 --virtual-time-budget=6000 --enable-logging=stderr --v=0 --dump-dom "$1" 2>"$2"
}
# A window of the browser cannot be narrower than 500 px, a frame can.
open_page() { # file, width, name
  probe "$1"
  cat >"$1.frame.html" <<END
<!doctype html><body style="margin:0"><iframe src="$1.probe.html" style="border:0;width:$2px;height:2000px"></iframe>
<script>addEventListener("message", (e) => { document.body.appendChild(document.createElement("pre")).textContent = e.data; });</script>
END
  if [ "$2" -ge 500 ]; then browse "file://$1.probe.html" "$dir/$3.log" >"$dir/$3.dom"
  else browse "file://$1.frame.html" "$dir/$3.log" >"$dir/$3.dom"; fi
  grep CONSOLE "$dir/$3.log" && fail "$3: the console is not silent"
  line=$(sed -n -e 's/.*<output id="probe">\([^<]*\)<.*/\1/p' -e 's/.*<pre>\([^<]*\)<.*/\1/p' "$dir/$3.dom" | head -1)
  name=$3 width=$2
  # shellcheck disable=SC2086
  set -- $line
  [ $# -eq 14 ] || { fail "$name: the probe did not answer"; return; }
  [ "$4" = "$width" ] || fail "$name: the window is $4 px wide, not $width"
  [ "$2" -le "$4" ] || fail "$name: the page is $2 px wide in a window of $4"
  [ "$6" -ge 5 ] && [ "$6" = "$8" ] || fail "$name: $8 of $6 controls can be reached by keyboard"
  [ "${10}" = 0 ] || fail "$name: the page made ${10} requests"
  [ "${12}" = no ] || fail "$name: an injected script ran"
  [ "${14}" = yes ] || fail "$name: the page did not finish"
}
clean() { # name: what only an injected string could have made
  grep -q 'data-pwned' "$dir/$1.dom" && fail "$1: an injected script ran: $(grep -o 'data-pwned="[^"]*"' "$dir/$1.dom" | head -1)"
  [ "$(grep -o '<script' "$dir/$1.dom" | wc -l)" -eq 3 ] || fail "$1: a script element was injected"
  for tag in img iframe object embed link form input video audio base template plaintext math details; do
    grep -qi "<$tag[ />]" "$dir/$1.dom" && fail "$1: an element <$tag> was injected"
  done
  grep -q 'class="empty bad"' "$dir/$1.dom" && fail "$1: a panel could not be drawn"
}

open_page "$dir/hostile.html" 1280 hostile
clean hostile
open_page "$dir/hostile.html" 390 hostile_narrow
open_page "$dir/report.html" 1280 wide
open_page "$dir/report.html" 390 narrow
# The net must be able to catch something: an element set by hand is seen.
sed 's,<div id="app">,<img src=x onerror="document.documentElement.dataset.pwned=0"><div id="app">,' "$dir/report.html" >"$dir/pricked.html"
browse "file://$dir/pricked.html" "$dir/pricked.log" | grep -q 'data-pwned="0"' || fail "this test would not see a script that runs"
grep -q "$(printf '\033')" "$dir/hostile.txt" && fail "the text report lets control characters through"
[ $bad -eq 0 ] && echo "$(cat "$dir/said"): nothing ran, nothing was requested; 1280 and 390 px, keyboard"
exit $bad
