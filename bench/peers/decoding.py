"""A decoder's loop: steps of one token with a past that grows, in one session of each engine.

    python3 bench/peers/decoding.py FILE.onnx... [--past 64] [--steps 64] [--tokens 1] [--threads 1] [--rounds 3]
                                    [--engines hone,ort,ov] [--before TREE]

Files are decoders of exported_kinds.py or decoders.py. Each engine runs in a process of its own, in turn for each round;
HONE_LIBRARY names hone's libhone.so; `--before` adds the hone of another tree (TREE/python, TREE/build/libhone.so.0)
as engine "before". Milliseconds: of the processor on
one thread, else of the clock. Printed are, of the rounds' medians: the first step, the median of the others, and hone's
speed beside each (its time / hone's). --tokens 128 gives each step so many tokens on a past that stays (prompts). The
largest difference of a step's logits from ONNX Runtime's, in parts of their range, is printed as well. OpenVINO runs with
the precision hint f32."""
import argparse
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def session(engine, path, threads, tree):
    """Names of the inputs, and a function from them to the outputs in order."""
    if engine == "ort":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        s = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        kinds = {i.name: "f16" if "(float16" in i.type else "f32" for i in s.get_inputs()}
        return kinds, lambda feeds: s.run(None, feeds)
    if engine == "ov":
        import openvino
        core = openvino.Core()
        model = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_NUM_THREADS": threads,
                                                                  "INFERENCE_PRECISION_HINT": "f32"})
        request = model.create_infer_request()
        kinds = {i.get_any_name(): i.get_element_type().get_type_name() for i in model.inputs}
        if "bf16" not in kinds.values():
            return kinds, lambda feeds: [np.array(x) for x in request.infer(feeds).values()]
        return kinds, lambda feeds: openvino_bf16(openvino, request, feeds, len(model.outputs))
    sys.path.insert(0, os.path.join(tree, "python"))
    import hone
    s = hone.Session(path, threads=threads, precision="f32")
    return {p.name: p.type for p in s.inputs}, lambda feeds: list(s.run(feeds).values())


def openvino_bf16(openvino, request, feeds, count):
    """A run with inputs of bf16: numpy has no such type, so their bytes go into tensors and come out of them."""
    import ml_dtypes
    inputs = {}
    for name, value in feeds.items():
        inputs[name] = value
        if value.dtype == ml_dtypes.bfloat16:
            inputs[name] = openvino.Tensor(openvino.Type.bf16, list(value.shape))
            inputs[name].data.view(np.uint16)[:] = value.view(np.uint16)
    request.infer(inputs)
    outputs = [request.get_output_tensor(i) for i in range(count)]
    return [t.data.view(ml_dtypes.bfloat16).copy() if t.element_type == openvino.Type.bf16 else t.data.copy()
            for t in outputs]


def number_type(kind):
    if kind == "bf16":
        import ml_dtypes
        return ml_dtypes.bfloat16
    return np.float16 if kind == "f16" else np.float32


def loop(engine, path, o):
    names, run = session(engine, path, o.threads, o.before if engine == "before" else os.path.join(HERE, "..", ".."))
    with open(path[:-len(".onnx")] + ".shapes") as f:
        shapes = {k: [int(n) for n in v.split("x")] for k, v in (w.split("=") for w in f.readline().split()[1:])}
    random = np.random.RandomState(1)
    feeds, pasts = {}, [n for n in names if n.startswith("past")]
    for name in sorted(names):
        if name.startswith(("past", "crossed")):
            dims = list(shapes[name])
            if name in pasts:
                dims[2] = o.past
            feeds[name] = random.standard_normal(dims).astype(number_type(names[name]))
    spent, logits, past = [], [], o.past
    clock = time.process_time if o.threads == 1 else time.perf_counter
    for i in range(o.steps):
        feeds[next(n for n in names if n.endswith("input_ids"))] = random.randint(5, 100, (1, o.tokens))
        if "attention_mask" in names:
            feeds["attention_mask"] = np.ones((1, past + o.tokens), np.int64)
        start = clock()
        out = run(feeds)
        spent.append((clock() - start) * 1e3)
        logits.append(np.array(out[0][0, -1], np.float32))
        if o.tokens == 1:
            feeds.update(zip(pasts, out[1:]))
            past += 1
        del out
    with open(o.into, "wb") as f:
        pickle.dump((spent[0], statistics.median(spent[1:] or spent), sum(spent), logits), f)


def turn(engine, path, o):
    """One round of one engine; None: it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        into = os.path.join(folder, "result")
        environment = dict(os.environ, HONE_LIBRARY=os.path.join(o.before, "build", "libhone.so.0")) if engine == "before" else None
        done = subprocess.run([sys.executable, __file__, path, "--engine", engine, "--into", into, "--past", str(o.past),
                               "--steps", str(o.steps), "--tokens", str(o.tokens), "--threads", str(o.threads), "--before", o.before or ""],
                              env=environment, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["failed"])[-1][:100]
        with open(into, "rb") as f:
            return pickle.load(f)


def compare(path, o):
    engines = o.engines.split(",") + (["before"] if o.before else [])
    rounds = {e: [] for e in engines}
    for _ in range(o.rounds):
        for e in engines:
            if not rounds[e] or not isinstance(rounds[e][0], str):
                rounds[e].append(turn(e, path, o))
    right = next((rounds[e][0][3] for e in ("ort", "ov") if e in rounds and not isinstance(rounds[e][0], str)), None)
    own = None
    for e in engines:
        name = os.path.basename(path)[:-5]
        if isinstance(rounds[e][0], str):
            print("%-24s %-6s %s" % (name, e, rounds[e][0]), flush=True)
            continue
        first, median, total = [statistics.median(r[i] for r in rounds[e]) for i in range(3)]
        own = own or median
        off = max(float(np.abs(a - b).max() / (np.abs(b).max() or 1)) for a, b in zip(rounds[e][0][3], right)) if right else 0
        print("%-24s %-6s first %8.2f median %8.3f all %9.1f ms, %5.2f of %s's, off by %.1e" %
              (name, e, first, median, total, median / own, engines[0], off), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--past", type=int, default=64)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", default="hone,ort,ov")
    parser.add_argument("--before")
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    parser.add_argument("--into", help=argparse.SUPPRESS)
    o = parser.parse_args()
    for path in o.files:
        if o.engine:
            loop(o.engine, path, o)
        else:
            compare(path, o)


if __name__ == "__main__":
    main()
