"""One attention with a cache of keys and values, hone and ONNX Runtime in turn, from Python.

    python3 bench/peers/cached.py [--threads 1] [--rounds 15] [--before TREE] [CASE...]

A CASE is FORM:HEADSxGROUPSxSIZE:TOKENS+PAST:BATCH, such as late:32x8x128:1+2048:1. Forms: gqa (GroupQueryAttention,
lengths known before the run), late (lengths are inputs), place (a cache that does not grow, continued in place: PAST is
its room, half of which is filled), attention (opset 23's Attention). Without cases: the ones below. Milliseconds are
medians of --rounds turns, in each of which every engine, in a process of its own, runs five times; the last column is the
largest difference of the attention's result, in parts of its range. HONE_LIBRARY names hone's libhone.so; `--before` adds
that of another tree (TREE/python, TREE/build/libhone.so.0)."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from onnx import TensorProto, helper

FEW = 5 # runs in a row of each engine

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = ("late:32x8x128:1+2048:1", "late:32x8x128:1+8192:1", "late:32x8x64:1+2048:8", "late:16x16x64:1+2048:8",
         "late:16x4x64:512+0:1", "gqa:32x8x128:1+2048:1", "place:32x8x128:1+4096:1", "place:32x8x128:1+4096:4",
         "attention:32x8x128:1+2048:1", "attention:8x8x64:16+0:8", "attention:16x16x64:1+2048:8")


def model(form, heads, groups, size, tokens, past, batch):
    """Bytes of a model, and inputs for it."""
    random = np.random.RandomState(3)
    shapes = {"q": (batch, tokens, heads * size), "k": (batch, tokens, groups * size), "v": (batch, tokens, groups * size)}
    for n in ("pk", "pv"):
        shapes[n] = (batch, groups, past, size)
    kinds = {"q": 1, "k": 1, "v": 1, "pk": 1, "pv": 1}
    total = past if form == "place" else past + tokens
    feeds = {n: random.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    constants, outputs = [], [("y", None), ("ok", (batch, groups, total, size)), ("ov", (batch, groups, total, size))]
    if form == "attention":
        nodes = [helper.make_node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "ok", "ov"], q_num_heads=heads,
                                  kv_num_heads=groups, is_causal=1)]
    else:
        filled = past // 2 if form == "place" else past
        feeds["n"] = np.full((batch,), filled + tokens - 1, np.int32)
        shapes["n"], kinds["n"] = (batch,), TensorProto.INT32
        if form == "late":
            feeds["t"] = np.array(total, np.int32)
            shapes["t"], kinds["t"] = (), TensorProto.INT32
        else:
            constants.append(helper.make_tensor("t", TensorProto.INT32, (), [total]))
        nodes = [helper.make_node("GroupQueryAttention", ["q", "k", "v", "pk", "pv", "n", "t"], ["y", "ok", "ov"],
                                  domain="com.microsoft", num_heads=heads, kv_num_heads=groups)]
    graph = helper.make_graph(nodes, "cached", [helper.make_tensor_value_info(n, kinds[n], s) for n, s in shapes.items()],
                              [helper.make_tensor_value_info(n, 1, None if form == "late" else s) for n, s in outputs],
                              constants)
    made = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 23),
                                                                  helper.make_opsetid("com.microsoft", 1)])
    return made.SerializeToString(), feeds


def hone_run(data, feeds, in_place, threads, tree):
    sys.path.insert(0, os.path.join(tree, "python"))
    import hone
    s = hone.Session(data, threads=threads)
    own = dict(feeds)
    if in_place:
        own["pk"], own["pv"] = feeds["pk"].copy(), feeds["pv"].copy()
        return lambda: s.run(own, into={"ok": own["pk"], "ov": own["pv"]})["y"]
    return lambda: s.run(own)["y"]


def ort_run(data, feeds, in_place, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    s = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    if not in_place:
        return lambda: s.run(None, feeds)[0]
    bound = s.io_binding()
    values = {n: onnxruntime.OrtValue.ortvalue_from_numpy(a.copy()) for n, a in feeds.items()}
    for n, v in values.items():
        bound.bind_ortvalue_input(n, v)
    bound.bind_output("y")
    bound.bind_ortvalue_output("ok", values["pk"])
    bound.bind_ortvalue_output("ov", values["pv"])

    def run():
        s.run_with_iobinding(bound)
        return bound.get_outputs()[0].numpy()
    return run


def numbers(case):
    form, heads, tokens, batch = case.split(":")
    return [form, *map(int, heads.split("x")), *map(int, tokens.split("+")), int(batch)]


def serve(o):
    """Runs of one engine in this process: for each line of the input the milliseconds of a few; first a file with what
    attention gave."""
    data, feeds = model(*numbers(o.cases[0]))
    in_place = o.cases[0].startswith("place")
    run = ort_run(data, feeds, in_place, o.threads) if o.serve == "ORT" else \
        hone_run(data, feeds, in_place, o.threads, o.serve)
    np.save(o.into, run())
    print("ready", flush=True)
    for _ in sys.stdin:
        spent = []
        for _ in range(FEW):
            start = time.perf_counter()
            run()
            spent.append((time.perf_counter() - start) * 1e3)
        print(statistics.median(spent), flush=True)


def begin(case, engine, o, into):
    tree = os.path.join(HERE, "..", "..")
    environment = dict(os.environ)
    if engine == "before":
        tree = o.before
        environment["HONE_LIBRARY"] = os.path.join(tree, "build", "libhone.so.0")
    command = [sys.executable, __file__, case, "--threads", str(o.threads), "--into", into, "--serve",
               "ORT" if engine == "ORT" else tree]
    p = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return p if p.stdout.readline() else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--before")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--into", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.serve:
        return serve(o)
    for case in o.cases or CASES:
        engines = ["hone", "ORT"] + (["before"] if o.before and not case.startswith("place") else [])
        with tempfile.TemporaryDirectory() as folder:
            serving = {e: begin(case, e, o, os.path.join(folder, e + ".npy")) for e in engines}
            result = {e: np.load(os.path.join(folder, e + ".npy")) for e in engines if serving[e]}
        if len(result) < len(engines):
            print("%-28s %s" % (case, ", ".join(e + " cannot" for e in engines if e not in result)), flush=True)
            continue
        spent = {e: [] for e in engines}
        for _ in range(o.rounds):
            for e, p in serving.items():
                print(file=p.stdin, flush=True)
                spent[e].append(float(p.stdout.readline()))
        for p in serving.values():
            p.stdin.close()
            p.wait()
        middle = {e: statistics.median(t[1:]) for e, t in spent.items()}
        off = np.abs(result["hone"] - result["ORT"]).max() / np.abs(result["ORT"]).max()
        print("%-28s %s, ORT / hone %.2f, off by %.1e" %
              (case, ", ".join("%s %8.3f ms" % (e, t) for e, t in middle.items()), middle["ORT"] / middle["hone"], off),
              flush=True)


if __name__ == "__main__":
    main()
