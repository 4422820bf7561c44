# Kernels of plugins on the GPU that the C compiler makes: sh cuda.sh BUILD SOURCE. f32, f16 and bf16, sizes with and without
# a rest, against the scalar reference; a text that does not compile is one error.
. "$(dirname "$0")/begin.sh"
source=$2
cp -r "$source/plugins" "$work" || exit 1
for name in swish add_relu softmax_attention yolo_nms yolo_decode depthwise_conv_bn_relu; do "$build/hone" op build "$work/plugins/$name" >/dev/null || fail "build $name"; done
gpu() { HONE_BUILD="$build" sh "$source/tests/cuda/emulated.sh" "$build/hone" "$@"; }
for shape in 2x3x17 4x64 1; do
  "$build/text_model" "graph g(%x: f32[$shape], %z: f32[$shape]) -> (%y) { %s = Add(%x, %z)  %r = Relu(%s)
    %g = Sigmoid(%r)  %y = Mul(%r, %g) }" "$work/m.onnx" || fail model
  for precision in f32 fp16 bf16; do
    gpu verify "$work/m.onnx" --op-path "$work/plugins" --device cuda --precision $precision -n 2 --json >"$work/v.json" 2>"$work/err" ||
      { fail "$shape $precision"; cat "$work/v.json" "$work/err"; }
  done
  gpu profile "$work/m.onnx" --op-path "$work/plugins" --device cuda -n 1 --json >"$work/p.json" 2>"$work/err" || { fail profile; cat "$work/err"; }
  for name in swish_cuda add_relu_cuda; do grep -q "\"$name\"" "$work/p.json" || fail "$shape: $name was not used"; done
done
# Attention by its own name: no choice to make. Rests of every kind, more keys than a block takes at once, masks.
for sizes in '2x3x37x24 2x3x24x141 2x3x141x19 2x1x1x141' '1x1x3x8 1x1x8x5 1x1x5x150 1x1x3x5' '2x9x5 2x5x7 2x7x6 7'; do
  set -- $sizes
  HONE_OP_PATH="$work/plugins" "$build/text_model" "opset \"custom\" 1
    graph g(%q: f32[$1], %k: f32[$2], %v: f32[$3], %m: f32[$4]) -> (%y, %z) {
    %y = custom::SoftmaxAttention(%q, %k, %v, %m) {scale=0.3}  %z = custom::SoftmaxAttention(%q, %k, %v) }" "$work/a.onnx" || fail model
  for precision in f32 fp16 bf16; do
    gpu verify "$work/a.onnx" --op-path "$work/plugins" --device cuda --precision $precision -n 2 --json >"$work/v.json" 2>"$work/err" ||
      { fail "attention $sizes $precision"; cat "$work/v.json" "$work/err"; }
  done
  gpu profile "$work/a.onnx" --op-path "$work/plugins" --device cuda -n 1 --json >"$work/p.json" 2>"$work/err" || fail profile
  grep -q '"softmax_attention_cuda"' "$work/p.json" || fail "$sizes: softmax_attention_cuda was not used"
done
# YoloNms: several images, classes with more candidates than a block sorts, none at all; f32 and f16.
for head in 'f32[2x1203x7] 2000 0.25' 'f16[2x1203x7] 9 -4.0' 'f32[1x37x90] 3 0.5' 'f32[3x5x6] 0 0.25' 'f32[1x9x8] 4 1000.0'; do
  set -- $head
  HONE_OP_PATH="$work/plugins" "$build/text_model" "opset \"custom\" 1
    graph g(%head: $1) -> (%s, %c) { %s, %c = custom::YoloNms(%head) {most=$2, score=$3} }" "$work/n.onnx" || fail model
  gpu run "$work/n.onnx" --op-path "$work/plugins" --device cuda --output-dir "$work/gpu" >/dev/null 2>"$work/err" || { fail "yolo_nms $head"; cat "$work/err"; }
  "$build/hone" run "$work/n.onnx" --op-path "$work/plugins" --output-dir "$work/host" >/dev/null || fail "yolo_nms $head, host"
  for out in s c; do cmp -s "$work/gpu/$out.npy" "$work/host/$out.npy" || fail "yolo_nms $head: $out differs"; done
  gpu profile "$work/n.onnx" --op-path "$work/plugins" --device cuda -n 1 --json >"$work/p.json" 2>"$work/err" || fail profile
  grep -q '"yolo_nms_cuda"' "$work/p.json" || fail "$head: yolo_nms_cuda was not used"
done
# DepthwiseConvBnReLU by its own name: strides, pads and dilations of both sides, with and without normalisation.
for attrs in 'pads=[1, 1, 1, 1]' 'pads=[1, 1, 1, 1], strides=[2, 2]' 'pads=[0, 1, 2, 0], strides=[2, 2]' 'pads=[2, 3, 2, 3], strides=[3, 1], dilations=[2, 3]'; do
  HONE_OP_PATH="$work/plugins" "$build/text_model" "opset \"custom\" 1
    graph g(%x: f32[2x2x13x22], %x4: f32[1x2x18x24], %x128: f32[1x2x15x256]) -> (%y, %z, %y4, %y128) {
    const %w: f32[2x1x3x3] = {1, -2, 3, 0.5, 2, -1, 0.25, 1, -3, 2, 1, 0, -1, 0.5, 3, -2, 1, 0.75}
    const %b: f32[2] = {0.5, -1}  const %s: f32[2] = {2, -0.5}  const %v: f32[2] = {0.25, 3}
    %y = custom::DepthwiseConvBnReLU(%x, %w, %b, %s, %b, %s, %v) {$attrs}
    %y4 = custom::DepthwiseConvBnReLU(%x4, %w, %b, %s, %b, %s, %v) {$attrs}
    %y128 = custom::DepthwiseConvBnReLU(%x128, %w, %b, %s, %b, %s, %v) {$attrs}
    %z = custom::DepthwiseConvBnReLU(%x, %w) {$attrs} }" "$work/d.onnx" || fail model
  for precision in f32 fp16; do
    gpu verify "$work/d.onnx" --op-path "$work/plugins" --device cuda --precision $precision -n 2 --json >"$work/v.json" 2>"$work/err" ||
      { fail "depthwise $attrs $precision"; cat "$work/v.json" "$work/err"; }
  done
  gpu profile "$work/d.onnx" --op-path "$work/plugins" --device cuda -n 1 --json >"$work/p.json" 2>"$work/err" || fail profile
  grep -q '"depthwise_conv_bn_relu_cuda"' "$work/p.json" || fail "$attrs: depthwise_conv_bn_relu_cuda was not used"
done
# Kernels alone on random inputs, and what is wrong with them is found: lanes of a rest, a rounding, an operand's type.
cases() { gpu op test "$@" --device cuda >"$work/log" 2>&1; }
for name in Swish:12 AddRelu:12 SoftmaxAttention:12 YoloNms:4 YoloDecode:12; do # large heads stand above
  cases ${name%:*} --op-path "$work/plugins" -n ${name#*:} && grep -q ' 0 failed' "$work/log" || { fail "hone op test ${name%:*}"; cat "$work/log"; }
done
cases DepthwiseConvBnReLU --op-path "$work/plugins" -n 8 --shape x=2x5x9x11 --shape w=5x1x3x3 --shape b=5 --shape scale=5 \
  --shape beta=5 --shape mean=5 --shape var=5 && grep -q '_cuda' "$work/log" || { fail "hone op test DepthwiseConvBnReLU"; cat "$work/log"; }
spoil() { # name, sed's expression
  rm -rf "$work/spoilt" && mkdir "$work/spoilt" && cp -r "$source/plugins/swish" "$work/spoilt/swish" || exit 1
  sed "$2" "$source/plugins/swish/swish_cuda.cu" >"$work/spoilt/swish/swish_cuda.cu"
  cmp -s "$source/plugins/swish/swish_cuda.cu" "$work/spoilt/swish/swish_cuda.cu" && fail "$1: nothing is spoilt"
  "$build/hone" op build "$work/spoilt/swish" >/dev/null || fail "build $1"
  cases Swish --op-path "$work/spoilt/swish" -n 12 && { fail "nobody notices $1"; cat "$work/log"; }
  grep -q 'again: hone op test .*--device cuda' "$work/log" || { fail "$1: no command"; cat "$work/log"; }
}
spoil rest 's/k < 4 \&\& i + k < a.n/k < 2 \&\& i + k < a.n/'
spoil beyond 's/k < 8 \&\& i + k < a.n/k < 8/'
spoil sign 's/expf(-beta/expf(beta/'
spoil denormals 's/{ return x \//{ return fabsf(x) < 1e-38f ? 0.0f : x \//'
spoil text 's/return x \//return x \/\//'
gpu op bench Swish --op-path "$work/plugins" --device cuda --shape x=2x8x16x16 -n 3 -w 1 --max-seconds 1 --json >"$work/b.json" 2>"$work/err" ||
  { fail "hone op bench"; cat "$work/err"; }
grep -q '"version": "swish_cuda"' "$work/b.json" && grep -q '"mean_us"' "$work/b.json" || { fail "hone op bench has no swish_cuda"; cat "$work/b.json"; }
grep -q '"dispatch_us": [0-9]' "$work/b.json" || fail "no dispatch_us on a GPU"
"$build/hone" op test Swish --op-path "$work/plugins" --device cuda:77 >"$work/log" 2>&1 && fail "a device that is not there"
[ "$(grep -c 'hone: error' "$work/log")" = 1 ] || { fail "one error for a device that is not there"; cat "$work/log"; }
exit $bad
