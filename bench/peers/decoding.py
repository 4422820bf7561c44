"""A decoder's loop: steps of one token with a past that grows, in one session of each engine.

    python3 bench/peers/decoding.py FILE.onnx... [--past 64] [--steps 64] [--engine hone|ort|ov]

Files are decoders of exported_kinds.py. Each engine runs in a process of its own on one thread; HONE_LIBRARY names
hone's libhone.so. Prints milliseconds of the processor for the first step, for the median of the others and for all, and
a hash of the tokens that were chosen, which has to be the same."""
import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def session(engine, path):
    """Names of the inputs, and a function from them to the outputs in order."""
    if engine == "ort":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        s = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return [i.name for i in s.get_inputs()], lambda feeds: s.run(None, feeds)
    if engine == "ov":
        import openvino
        core = openvino.Core()
        model = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_NUM_THREADS": 1,
                                                                  "INFERENCE_PRECISION_HINT": "f32"})
        request = model.create_infer_request()
        return [i.get_any_name() for i in model.inputs], lambda feeds: [np.array(x) for x in request.infer(feeds).values()]
    sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
    import hone
    s = hone.Session(path, threads=1)
    return [p.name for p in s.inputs], lambda feeds: list(s.run(feeds).values())


def loop(engine, path, past, steps):
    names, run = session(engine, path)
    with open(path[:-len(".onnx")] + ".shapes") as f:
        shapes = {k: [int(n) for n in v.split("x")] for k, v in (w.split("=") for w in f.readline().split()[1:])}
    random = np.random.RandomState(1)
    feeds, pasts = {}, [n for n in names if n.startswith("past")]
    for name in names:
        if name.startswith(("past", "crossed")):
            dims = list(shapes[name])
            if name in pasts:
                dims[2] = past
            feeds[name] = random.standard_normal(dims).astype(np.float32)
    tokens, token, spent = [], 7, []
    for i in range(steps):
        feeds[next(n for n in names if n.endswith("input_ids"))] = np.array([[token]], np.int64)
        if "attention_mask" in names:
            feeds["attention_mask"] = np.ones((1, past + i + 1), np.int64)
        start = time.process_time()
        out = run(feeds)
        spent.append((time.process_time() - start) * 1e3)
        token = int(np.argmax(out[0][0, -1]))
        tokens.append(token)
        feeds.update(zip(pasts, out[1:]))
    print("%-16s %-5s first %8.2f median %7.2f all %9.1f ms, tokens %d" %
          (os.path.basename(path)[:-5], engine, spent[0], statistics.median(spent[1:]), sum(spent),
           sum(t * (k + 1) for k, t in enumerate(tokens)) % 99991), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--past", type=int, default=64)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--engine", choices=("hone", "ort", "ov"))
    o = parser.parse_args()
    if o.engine:
        for path in o.files:
            loop(o.engine, path, o.past, o.steps)
        return
    for path in o.files:
        for engine in ("hone", "ort", "ov"):
            subprocess.run([sys.executable, __file__, path, "--engine", engine, "--past", str(o.past), "--steps",
                            str(o.steps)], check=False)


if __name__ == "__main__":
    main()
