# The patterns of plugins/yolo_decode on what exporters write: sh decode.sh BUILD SOURCE. All heads of YOLOv3's form and of both
# spellings of YOLOv5's are found, and the answers are those of the nodes; grids for all anchors or each, heads of several images.
. "$(dirname "$0")/begin.sh"
source=$2
cp -r "$source/plugins/yolo_decode" "$work" || exit 1
"$hone" op build yolo_decode >/dev/null || fail build
three='%xy, %wh, %rest = Split(%t, %cut) {axis=4}
  %a = Sigmoid(%xy)  %g = Add(%a, %cells)  %p = Mul(%g, %stride)
  %e = Exp(%wh)  %q = Mul(%e, %sizes)  %s = Sigmoid(%rest)  %c = Concat(%p, %q, %s) {axis=4}'
five() { echo '%s = Sigmoid(%t)  %xy, %wh, %rest = Split(%s, %cut) {axis=4}
  %a = Mul(%xy, %two)  %g = Add(%a, %cells)  %p = Mul(%g, %stride)
  %d = Mul(%wh, %two) '"$1"' %q = Mul(%e, %sizes)  %c = Concat(%p, %q, %rest) {axis=4}'; }
try() { # what, images, anchors of cells, h and w of sizes, the middle nodes, form
  HONE_OP_PATH="$work/yolo_decode" "$build/text_model" "opset 17
    opset \"custom\" 1
    graph g(%head: f32[$2x33x14x18]) -> (%y, %far) {
    const %split: i64[5] = {$2, 3, 11, 14, 18}  const %cut: i64[3] = {2, 2, 7}  const %rows: i64[3] = {$2, -1, 11}
    const %cells: f32[1x$3x14x18x2] = rand(1)  const %sizes: f32[1x3x$4x2] = rand(2)
    const %stride: f32 = 16.0  const %two: f32 = 2.0  const %thousand: f32 = 1000.0
    %r = Reshape(%head, %split)  %t = Transpose(%r) {perm=[0, 1, 3, 4, 2]}
    $5
    %y = Reshape(%c, %rows)
    %o = custom::YoloDecode(%head, %cells, %sizes) {stride=16.0, form=$6}
    %d0 = Sub(%o, %y)  %d1 = Abs(%d0)  %d2 = Mul(%d1, %thousand)  %d3 = Floor(%d2)  %far = ReduceMax(%d3) }" m.onnx >log 2>&1 || { fail "$1: no model"; cat log; return; }
  "$hone" optimize m.onnx -o o.onnx --op-path yolo_decode --explain >log 2>&1 || fail "$1: optimize"
  grep -q 'this is custom.YoloDecode' log || { fail "$1: not found"; cat log; }
  "$hone" run m.onnx --op-path yolo_decode --output-dir out >log 2>&1 || { fail "$1: run"; cat log; }
  tail -c 4 out/far.npy | od -An -tf4 | awk '{ exit !($1 == 0) }' || fail "$1: by its own name it is far from the nodes"
  "$hone" verify m.onnx --op-path yolo_decode -n 2 >log 2>&1 || { fail "$1: other answers"; cat log; }
}
try YOLOv3 1 1 1x1 "$three" 3
try 'YOLOv3, images' 2 3 1x1 "$three" 3
try YOLOv5 1 3 14x18 "$(five '%e = Pow(%d, %two)')" 5
try 'YOLOv5, product' 2 1 1x1 "$(five '%e = Mul(%d, %d)')" 5
"$hone" op test YoloDecode --op-path yolo_decode -n 8 >log 2>&1 || { fail "hone op test"; cat log; }
exit $bad
