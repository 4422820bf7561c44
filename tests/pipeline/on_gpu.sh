# hone pipeline on a device with memory of its own gives what the processor gives: sh on_gpu.sh BUILD SOURCE
set -u
build=$1 source=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
"$build/text_model" "graph g(%x: f32[Nx3x8x8]) -> (%y) { %s = ReduceMean(%x) {axes=[2, 3], keepdims=0}  %y = Relu(%s) }" m.onnx || exit 1
cp "$source/tests/chain/data/page.png" a.png && cp a.png b.png && echo none >bad.png || exit 1
for n in a bad b a; do echo "$n.png"; done >list.txt
bad=0
for device in cpu cuda; do
  "$build/hone" pipeline m.onnx --input list.txt --output $device.jsonl --post none --device $device -b 2 --json >$device.json 2>$device.err
  [ "$(wc -l <$device.jsonl)" = 4 ] || { echo "FAIL: $device"; cat $device.err; bad=1; }
done
[ "$(grep -c '"error"' cuda.jsonl)" = 1 ] || { echo "FAIL: the bad file is one line"; cat cuda.jsonl; bad=1; }
jq -c '[.name, (.error != null)]' cpu.jsonl >cpu.list && jq -c '[.name, (.error != null)]' cuda.jsonl >cuda.list
cmp cpu.list cuda.list || bad=1
exit $bad
