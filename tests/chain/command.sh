#!/bin/sh
# hone chain as a command: results, files, exit codes; with the models of ../shared (or HONE_SHARED) text in a picture.
# Usage: command.sh HONE
set -eu
hone=$1
here=$(cd "$(dirname "$0")" && pwd)
cases=${HONE_SHARED:-$here/../../../shared}/cases
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAIL: $*"
  exit 1
}
ends() { # STATUS WORDS COMMAND...: the command ends so and says that on standard error
  want=$1 words=$2
  shift 2
  got=0
  "$@" >"$work/out" 2>"$work/err" || got=$?
  [ $got = "$want" ] || fail "$* ended with $got, not $want: $(cat "$work/err")"
  grep -q -- "$words" "$work/err" || fail "$* does not say '$words': $(cat "$work/err")"
}

cat >"$work/classes.json" <<'EOF'
{"inputs": {"image": "picture"},
 "stages": [
  {"name": "pixels", "kind": "prepare", "from": "image"},
  {"name": "net", "kind": "model", "path": "zoo:mobilenetv2", "from": "pixels"},
  {"name": "p", "kind": "softmax", "from": "net"},
  {"name": "top", "kind": "topk", "from": "p", "k": 3}]}
EOF
mkdir "$work/pictures"
cp "$here/data/page.png" "$work/pictures/b.png"
cp "$here/data/page.png" "$work/pictures/a.png"
echo nothing >"$work/pictures/notes.txt"
"$hone" chain "$work/classes.json" --input "$work/pictures" -o "$work/lines" >"$work/out"
[ "$(jq -r .input "$work/lines" | sed 's/.*\///' | tr '\n' ' ')" = "a.png b.png " ] || fail "order: $(cat "$work/lines")"
jq -e '.outputs.top | length == 3 and .[0].score >= .[2].score and .[0].item == 0' "$work/lines" >/dev/null || fail "top: $(cat "$work/lines")"
grep -q '^residual' "$work/out" || fail "no table of times"
"$hone" chain "$work/classes.json" --input "$work/pictures/a.png" --output - | jq -e .outputs.top >/dev/null || fail "--output -"
"$hone" chain "$work/classes.json" --input "$work/pictures/a.png" --repeat 3 --json >"$work/doc"
jq -e '.time.runs == 2 and .time.plan_ms == 0 and .failed == 0 and (.results | length) == 1 and .memory.shared > 0
  and ((.time.wall_ms - .time.read_ms - .time.stages_ms - .time.plan_ms - .time.idle_ms - .time.residual_ms) | fabs) < 0.001' \
  "$work/doc" >/dev/null || fail "--json: $(cat "$work/doc")"

# A broken file is one line, and the others go on.
head -c 3000 "$here/data/page.png" >"$work/pictures/aa.png"
ends 3 "aa.png" "$hone" chain "$work/classes.json" --input "$work/pictures" --output "$work/lines"
[ "$(wc -l <"$work/lines")" = 2 ] || fail "two of three: $(cat "$work/lines")"
grep -q "1 of 3 files failed" "$work/err" || fail "$(cat "$work/err")"
rm "$work/lines"
ends 3 "aa.png" "$hone" chain "$work/classes.json" --input "$work/pictures/aa.png" --output "$work/lines"
[ ! -e "$work/lines" ] || fail "a file was left behind"

ends 2 "needs --input" "$hone" chain "$work/classes.json"
ends 2 "both want standard output" "$hone" chain "$work/classes.json" --input x.png --json --output -
ends 3 "none.json" "$hone" chain "$work/none.json" --input x.png
ends 3 "none.png" "$hone" chain "$work/classes.json" --input "$work/none.png"
mkdir "$work/empty"
ends 4 "holds no pictures" "$hone" chain "$work/classes.json" --input "$work/empty"
sed 's/"topk"/"topk", "kay": 1/' "$work/classes.json" >"$work/bad.json"
ends 3 "bad.json: line 6, column 42: there is no member 'kay'" "$hone" chain "$work/bad.json" --input x.png
sed 's/"net"}/"net"/' "$work/classes.json" >"$work/bad.json"
ends 3 "bad.json: line 6, column" "$hone" chain "$work/bad.json" --input x.png
sed s/zoo:mobilenetv2/zoo:none/ "$work/classes.json" >"$work/bad.json"
ends 3 "line 4, column 44: no built-in network" "$hone" chain "$work/bad.json" --input x.png

if [ ! -d "$cases/models/ppocr" ]; then
  echo "SKIP: no models of PP-OCR in $cases"
  exit 0
fi
cp "$here/../../examples/chains/ocr.json" "$work"
for file in "$cases"/models/ppocr/*; do ln -s "$(readlink -f "$file")" "$work"; done
"$hone" chain "$work/ocr.json" --input "$here/data/page.png" --json >"$work/page"
words=$(jq -r '.results[0].outputs.text[] | select(.score > 0.9) | .text' "$work/page" | tr -d ' ' | sort | tr '\n' ' ')
# The model leaves out most spaces.
[ "$words" = "Invoice2041 Severalmodelsinonesession smallprintatthebottomofthepage standing tiltedbytendegrees total319.90EUR upsidedown " ] ||
  fail "the page says: $words"
# Boxes as the lines stand: the third corner of the tilted one is 45 pixels above its first row's beginning.
jq -e '.results[0].outputs | (.boxes | length) == (.text | length) and
  ([.text[] | select(.text | startswith("tilted"))][0].item as $i | .boxes[$i].corners | (.[0][1] - .[1][1]) > 30)' "$work/page" >/dev/null ||
  fail "boxes: $(jq -c '.results[0].outputs.boxes' "$work/page")"
jq -e '.memory | .shared < .apart and .values < .values_apart' "$work/page" >/dev/null || fail "memory: $(jq -c .memory "$work/page")"
# A photograph of a receipt with letters 8 pixels high.
"$hone" chain "$work/ocr.json" --input "$cases/images/hot_dog.jpg" --output - >"$work/receipt"
for word in SNACK TAXI 01/06/20; do
  jq -r '.outputs.text[].text' "$work/receipt" | grep -q "$word" || fail "the receipt lacks $word: $(jq -r '.outputs.text[].text' "$work/receipt")"
done
