#!/bin/sh
# What hone quantize writes, in ONNX Runtime: it loads, passes ONNX's checker, and has hone's largest output on the same
# samples. Usage: ort.sh HONE
set -eu
hone=$1
. tests/quantize/python.sh
"$hone" zoo mobilenetv2 --width 0.25 --size 32 -o "$dir/mobilenetv2.onnx" >/dev/null
"$hone" zoo resnet50 --width 0.1 --size 32 -o "$dir/resnet50.onnx" >/dev/null
for shared in "${HONE_SHARED:-../shared}"/cases/models/mnist-cntk.onnx "${HONE_SHARED:-../shared}"/cases/models/ppocr/ch_ppocr_mobile_v2.0_cls_infer.onnx; do
  [ -f "$shared" ] && cp "$shared" "$dir/"
done
cat >"$dir/compare.py" <<'PY'
import os, subprocess, sys
import numpy as np, onnx, onnxruntime as rt

hone, file, folder = sys.argv[1:]
onnx.checker.check_model(file, full_check=True)
options = rt.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = 1, 3
session = rt.InferenceSession(file, options, providers=["CPUExecutionProvider"])
inp, out = session.get_inputs()[0], session.get_outputs()[0]
same, runs = 0, 6
for i in range(runs):
    dims = [d if isinstance(d, int) else 1 if k == 0 else 48 for k, d in enumerate(inp.shape)]
    x = np.random.default_rng(i).standard_normal(dims).astype(np.float32) * (100 if "mnist" in file else 1)
    np.save(folder + "/x.npy", x)
    subprocess.run([hone, "run", file, "-i", f"{inp.name}={folder}/x.npy", "--output-dir", folder + "/out", "-t", "1"],
                   check=True, stdout=subprocess.DEVNULL)
    names = [f for f in os.listdir(folder + "/out") if f.endswith(".npy")]
    ours, theirs = np.load(folder + "/out/" + names[0]), session.run([out.name], {inp.name: x})[0]
    # Two engines round the same sums of a random network to neighbouring codes: what is as large up to 2 % of the
    # range is as good as the largest.
    picked = np.take_along_axis(ours, theirs.argmax(-1)[..., None], -1)[..., 0]
    same += ours.shape == theirs.shape and bool((ours.max(-1) - picked <= 0.02 * (ours.max() - ours.min())).all())
    os.remove(folder + "/out/" + names[0])
print(f"{os.path.basename(file)}: the same top 1 in {same} of {runs}")
sys.exit(0 if same == runs else 1)
PY
bad=0
for model in "$dir"/*.onnx; do
  name=$(basename "$model" .onnx)
  for options in '--target ort' '--target tensorrt' '--target openvino --equalize --bias-correction' '--to fp16'; do
    # shellcheck disable=SC2086
    "$hone" quantize "$model" -o "$dir/q.onnx" --calib random -n 4 -t 1 $options >/dev/null 2>&1 ||
      { echo "$name $options: not written"; bad=1; continue; }
    run "$python" "$dir/compare.py" "$hone" "$dir/q.onnx" "$dir" || { echo "$name $options"; bad=1; }
    rm -f "$dir/q.onnx" "$dir/q.ranges.json"
  done
done
exit $bad
