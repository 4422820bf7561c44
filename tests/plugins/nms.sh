# The plugin of plugins/yolo_nms against ONNX's own nodes, on heads of networks: sh nms.sh BUILD SOURCE. UltraFace gives
# corners, NanoDet distances from the middle of a cell; both become the head of a YOLO network by a few nodes.
. "$(dirname "$0")/begin.sh"
source=$2 cases=${HONE_SHARED:-$source/../shared}/cases
cp -r "$source/plugins/yolo_nms" "$work" || exit 1
"$hone" op build yolo_nms >/dev/null || { echo "FAIL: build"; exit 1; }
export HONE_OP_PATH="$work/yolo_nms"
# The head from %head on, both ways, and the model of it.
model() { # inputs, lines that make %head, columns, attributes: most iou least, file
  "$build/text_model" "opset 17
    opset \"custom\" 1
    graph g($1) -> (%s, %c, %y) { $2
    %s, %c = custom::YoloNms(%head) {most=$4, iou=$5, score=$6}
    const %zero: i64[1] = {0}  const %four: i64[1] = {4}  const %five: i64[1] = {5}  const %end: i64[1] = {$3}
    const %axis: i64[1] = {2}  const %most: i64[1] = {$4}  const %iou: f32[1] = {$5}  const %least: f32[1] = {$6}
    %box = Slice(%head, %zero, %four, %axis)  %object = Slice(%head, %four, %five, %axis)
    %class = Slice(%head, %five, %end, %axis)  %score = Mul(%class, %object)
    %turned = Transpose(%score) {perm=[0, 2, 1]}
    %y = NonMaxSuppression(%box, %turned, %most, %iou, %least) {center_point_box=1} }" "$7" || fail "model $7"
}
# The rows that count are those of ONNX's node, bit for bit, and -1 stands behind them.
same() { # model, least rows, options of hone run
  file=$1 least=$2; shift 2
  rm -rf out
  "$hone" run "$file" --output-dir out "$@" >log 2>&1 || { fail "$file"; cat log; return; }
  tail -c +129 out/y.npy >want; tail -c +129 out/s.npy >got
  rows=$(tail -c +129 out/c.npy | od -An -td8 | tr -d ' ')
  [ "$rows" -ge "$least" ] || fail "$file: $rows rows, too few to say much"
  [ $((rows * 24)) = "$(wc -c <want)" ] || fail "$file: $rows rows, ONNX's node has $(($(wc -c <want) / 24))"
  head -c $((rows * 24)) got | cmp -s - want || fail "$file: not the rows of ONNX's node"
  tail -c +$((rows * 24 + 1)) got | tr -d '\377' | cmp -s - /dev/null || fail "$file: no -1 behind the rows"
}
model '%head: f32[2x301x22]' '' 22 7 0.45 0.25 random.onnx
model '%head: f32[1x1500x6]' '' 6 2000 0.1 -0.5 one.onnx
model '%head: f32[3x7x9]' '' 9 0 0.45 0.25 none.onnx
for threads in 1 3; do
  same random.onnx 50 --threads $threads
  same one.onnx 50 --threads $threads
  same none.onnx 0 --threads $threads
done
if [ ! -f "$cases/models/nanodet_m_320.onnx" ] || [ ! -f "$cases/models/ultraface_RFB-320.onnx" ]; then
  [ $bad = 0 ] || exit 1
  echo "SKIP: no $cases/models: heads of networks were not compared"
  exit 77
fi
"$hone" run "$cases/models/ultraface_RFB-320.onnx" --output-dir face >/dev/null || fail ultraface
model '%scores: f32[1x4420x2], %boxes: f32[1x4420x4]' '
  const %two: i64[1] = {2}  const %first: i64[1] = {0}  const %last: i64[1] = {4}  const %columns: i64[1] = {2}
  const %half: f32 = {0.5}  const %no: f32 = {0}  const %yes: f32 = {1}  const %single: i64[1] = {1}
  %low = Slice(%boxes, %first, %two, %columns)  %high = Slice(%boxes, %two, %last, %columns)
  %sum = Add(%low, %high)  %middle = Mul(%sum, %half)  %size = Sub(%high, %low)
  %some = Slice(%scores, %first, %single, %columns)  %nothing = Mul(%some, %no)  %ones = Add(%nothing, %yes)
  %head = Concat(%middle, %size, %ones, %scores) {axis=2}' 7 200 0.3 0.02 face.onnx
same face.onnx 3 -i scores=face/scores.npy -i boxes=face/boxes.npy
# NanoDet: of each stride the cells in order, and softmax over 8 distances of each side.
"$hone" run "$cases/models/nanodet_m_320.onnx" --output-dir dot >/dev/null || fail nanodet
inputs='' lines='' boxes='' scores='' files=''
for stride in 8 16 32; do
  cells=$((320 / stride)) n=$((320 / stride * (320 / stride)))
  inputs="$inputs${inputs:+, }%cls_$stride: f32[1x${n}x80], %dis_$stride: f32[1x${n}x32]"
  lines="$lines
  const %start_$stride: f32 = {0}  const %stop_$stride: f32 = {$n}  const %step_$stride: f32 = {1}
  const %cells_$stride: f32 = {$cells}  const %stride_$stride: f32 = {$stride}  const %mid_$stride: f32 = {0.5}
  %i_$stride = Range(%start_$stride, %stop_$stride, %step_$stride)  %q_$stride = Div(%i_$stride, %cells_$stride)
  %row_$stride = Floor(%q_$stride)  %done_$stride = Mul(%row_$stride, %cells_$stride)
  %column_$stride = Sub(%i_$stride, %done_$stride)
  const %flat_$stride: i64[3] = {1, $n, 1}  const %sides_$stride: i64[4] = {1, $n, 4, 8}
  const %distances_$stride: f32[8x1] = {0, 1, 2, 3, 4, 5, 6, 7}  const %four_$stride: i64[3] = {1, $n, 4}
  %x0_$stride = Add(%column_$stride, %mid_$stride)  %x1_$stride = Mul(%x0_$stride, %stride_$stride)
  %y0_$stride = Add(%row_$stride, %mid_$stride)  %y1_$stride = Mul(%y0_$stride, %stride_$stride)
  %x_$stride = Reshape(%x1_$stride, %flat_$stride)  %y_$stride = Reshape(%y1_$stride, %flat_$stride)
  %r_$stride = Reshape(%dis_$stride, %sides_$stride)  %p_$stride = Softmax(%r_$stride) {axis=3}
  %e_$stride = MatMul(%p_$stride, %distances_$stride)  %f_$stride = Reshape(%e_$stride, %four_$stride)
  %g_$stride = Mul(%f_$stride, %stride_$stride)
  %left_$stride, %top_$stride, %right_$stride, %bottom_$stride = Split(%g_$stride) {axis=2}
  %w_$stride = Add(%left_$stride, %right_$stride)  %h_$stride = Add(%top_$stride, %bottom_$stride)
  %dx_$stride = Sub(%right_$stride, %left_$stride)  %ex_$stride = Mul(%dx_$stride, %mid_$stride)
  %dy_$stride = Sub(%bottom_$stride, %top_$stride)  %ey_$stride = Mul(%dy_$stride, %mid_$stride)
  %cx_$stride = Add(%x_$stride, %ex_$stride)  %cy_$stride = Add(%y_$stride, %ey_$stride)
  %zeros_$stride = Mul(%w_$stride, %start_$stride)  %ones_$stride = Add(%zeros_$stride, %step_$stride)
  %head_$stride = Concat(%cx_$stride, %cy_$stride, %w_$stride, %h_$stride, %ones_$stride, %cls_$stride) {axis=2}"
  boxes="$boxes${boxes:+, }%head_$stride"
  files="$files -i cls_$stride=dot/cls_pred_stride_$stride.npy -i dis_$stride=dot/dis_pred_stride_$stride.npy"
done
model "$inputs" "$lines
  %head = Concat($boxes) {axis=1}" 85 100 0.6 0.02 dot.onnx
# shellcheck disable=SC2086
same dot.onnx 20 $files
exit $bad
