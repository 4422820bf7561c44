#!/bin/sh
# hone serve from its start to Ctrl-C: it says where it listens, ends with 0 and prints what it did. What cannot be served ends with the
# code that belongs to it, and says why.
set -eu
hone=$1
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
bad() { echo "$1" >&2; cat out err >&2 2>/dev/null || true; exit 1; }
wants() { # code text arguments...
  code=$1 text=$2
  shift 2
  set +e
  "$hone" serve "$@" >out 2>err
  got=$?
  set -e
  [ "$got" = "$code" ] || bad "hone serve $*: $got instead of $code"
  grep -q "$text" err || bad "hone serve $*: does not say '$text'"
}
"$hone" zoo mobilenetv2 --width 0.1 --size 32 -o 'a b.onnx' >/dev/null
wants 2 'no address' 'a b.onnx' --listen 8000
wants 2 'a model .a b. already' 'a b.onnx' 'a b.onnx'
wants 2 'wants a time' 'a b.onnx' --batch-delay soon
wants 3 'none.onnx' none.onnx
"$hone" optimize 'a b.onnx' -o saved.hone >/dev/null
wants 2 'hone serve wants the model' saved.hone
# What requests may not choose is told.
if [ -x "$(dirname "$hone")/text_model" ]; then
  "$(dirname "$hone")/text_model" 'graph g(%x: f32[NxLx3]) -> (%y) { %y = Relu(%x) }' open.onnx || bad "no model to serve"
  wants 2 "dimension 1 of input 'x' is .*; --profile L=MIN:OPT:MAX lets requests differ" open.onnx --listen 8000
  wants 2 'up to 8 samples a run' open.onnx --profile L=1:4:8 --listen 8000
  if grep -q 'lets requests differ' err; then bad "a dimension with a profile is called fixed"; fi
  # A decoder generates, unless its runs are wanted.
  "$(dirname "$hone")/text_model" 'opset 17 opset "com.microsoft" 1
    graph g(%input_ids: i64[BxS], %attention_mask: i64[BxT], %pk: f32[Bx1xPx4], %pv: f32[Bx1xPx4]) -> (%logits, %ok, %ov) {
    const %t: f32[5x4] = {1, 2, -3, 4, -5, 6, 7, -8, 9, 10, -11, 12, 13, 14, -15, 16, 17, -18, 19, 20}
    const %one: i64[1] = {1}
    const %unit: i64 = {1}
    %x = Gather(%t, %input_ids)
    %s = ReduceSum(%attention_mask, %one) {keepdims=0}
    %d = Sub(%s, %unit)
    %n = Cast(%d) {to=6}
    %h = Shape(%attention_mask)
    %w = Gather(%h, %unit)
    %m = Cast(%w) {to=6}
    %logits, %ok, %ov = com.microsoft::GroupQueryAttention(%x, %x, %x, %pk, %pv, %n, %m) {num_heads=1, kv_num_heads=1} }' \
    decoder.onnx || bad "no decoder to serve"
  wants 2 'generates 3 sequences of up to 16 tokens, cache of .* MiB$' decoder.onnx --sequences 3 --context 16 --listen 8000
  wants 2 'up to 8 samples a run\|1 sample a run' decoder.onnx --no-generate --listen 8000
  wants 2 'no room for one sequence' decoder.onnx --context 100000 --cache-size 0.1
  wants 2 'at most 4096 sequences' decoder.onnx --sequences 5000
  wants 2 'of that name, got Q' open.onnx 'a b.onnx' --profile L=1:4:8 --profile Q=1:2:3 --listen 127.0.0.1:0
else
  echo "SKIP: models with open dimensions: build text_model"
fi
wants 2 'names no device' 'a b.onnx' --device ,
wants 2 'nowhere' 'a b.onnx' --device cpu,nowhere
"$hone" serve 'net=a b.onnx' 'a b.onnx' --listen 127.0.0.1:0 -t 1 -b 2 --device cpu,cpu --json >out 2>err &
pid=$!
i=0
until grep -q listening err; do
  kill -0 "$pid" 2>/dev/null || { grep -q 'without libmicrohttpd\|libmicrohttpd is not' err && { echo "SKIP: no libmicrohttpd"; exit 0; }; bad "it ended"; }
  i=$((i + 1))
  [ $i -lt 600 ] || bad "it does not listen"
  sleep 0.1
done
grep -q 'net: ready in .*; up to 2 samples a run' err || bad "it does not say how it serves"
kill -TERM "$pid"
set +e
wait "$pid"
code=$?
set -e
pid=
[ $code = 0 ] || bad "it ended with $code"
grep -q '"name": "a b"' out || bad "it does not say what it did"
