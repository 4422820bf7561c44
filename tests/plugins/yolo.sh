# The plugin behind a whole network: sh yolo.sh BUILD SOURCE. A narrow YOLOv3 with decoding and YoloNms, as
# plugins/yolo_nms/append.py makes it, runs, and the share behind the network is told.
. "$(dirname "$0")/begin.sh"
source=$2 python=${HONE_PYTHON:-python3}
"$python" -c 'import onnx.helper' 2>/dev/null || { echo "SKIP: $python has no onnx"; exit 77; }
cp -r "$source/plugins/yolo_nms" "$work" || exit 1
append() { "$python" "$source/plugins/yolo_nms/append.py" "$@"; }
"$hone" op build yolo_nms >/dev/null || fail build
"$hone" zoo yolov3 -b 1 --width 0.0625 -o y.onnx >/dev/null || fail zoo
append y.onnx whole.onnx || fail append
"$hone" profile whole.onnx --op-path yolo_nms -n 1 -w 0 --json >p.json || fail profile
grep -q '"yolo_nms_' p.json || fail "yolo_nms was not used"
append --share p.json >share || fail share
grep -q '^behind the network: .* ms, .* %$' share || { fail "no share"; cat share; }
"$hone" run whole.onnx --op-path yolo_nms --output-dir fast >/dev/null || fail run
rows=$(tail -c +129 fast/count.npy | od -An -td8 | tr -d ' ')
[ "$rows" -gt 0 ] || fail "no box is left"
"$hone" zoo yolov3 -b 1 --width 0.0625 --size 320 -o other.onnx >/dev/null || fail zoo
append other.onnx w.onnx 2>err && fail "heads of another size"
grep -q 'no head of YOLOv3-416' err || { fail "no error for heads of another size"; cat err; }
exit $bad
