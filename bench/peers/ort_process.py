"""One run of the peer, alone in its process: ONNX Runtime on MODEL with the inputs of an .npz file; prints one JSON line.

load_ms is from creating the session to the first output; rss_mib is the peak above interpreter and libraries. Neither the start
of Python nor its imports count, which is in the peer's favour."""
import argparse
import json
import statistics
import time

import numpy as np
import onnxruntime as ort


def rss_mib():
    """Peak of this process image; ru_maxrss would also remember whoever started it."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("inputs")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--warmup", type=int, default=0)
    p.add_argument("--outputs")
    a = p.parse_args()
    feeds = dict(np.load(a.inputs))
    base = rss_mib()
    options = ort.SessionOptions()
    options.intra_op_num_threads = a.threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    start = time.perf_counter()
    session = ort.InferenceSession(a.model, options, providers=["CPUExecutionProvider"])
    first = session.run(None, feeds)
    load = (time.perf_counter() - start) * 1e3
    if a.outputs:
        np.savez(a.outputs, **{o.name: v for o, v in zip(session.get_outputs(), first)})
    times = []
    for i in range(a.warmup + a.runs):
        t = time.perf_counter()
        session.run(None, feeds)
        if i >= a.warmup:
            times.append((time.perf_counter() - t) * 1e3)
    print(json.dumps({"version": ort.__version__, "load_ms": load, "median_ms": statistics.median(times),
                      "rss_mib": rss_mib() - base}))


main()
