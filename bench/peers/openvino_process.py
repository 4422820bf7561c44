"""One run of OpenVINO, alone in its process, as ort_process.py does it for ONNX Runtime; --precision is what it may compute in."""
import argparse
import json
import statistics
import time

import numpy as np
import openvino as ov


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("inputs")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--warmup", type=int, default=0)
    p.add_argument("--precision", default="f32")
    a = p.parse_args()
    feeds = dict(np.load(a.inputs))
    core = ov.Core()
    model = core.read_model(a.model)
    if model.is_dynamic():
        model.reshape({i.get_any_name(): list(feeds[i.get_any_name()].shape) for i in model.inputs})
    compiled = core.compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": a.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": a.precision})
    request = compiled.create_infer_request()
    times = []
    for i in range(1 + a.warmup + a.runs):
        t = time.perf_counter()
        request.infer(feeds, share_inputs=True)
        if i > a.warmup:
            times.append((time.perf_counter() - t) * 1e3)
    print(json.dumps({"version": ov.__version__, "median_ms": statistics.median(times)}))


main()
