"""Networks quantised in every form that ONNX Runtime's tools and hone quantize write, in hone and in ONNX Runtime.

usage: forms.py HONE FOLDER [--full] [--time] [--only TEXT] [--models FILE...] [NETWORK...]

Q/DQ and QOperator, activations u8 or i8, symmetric or not, weights a scale a tensor or a channel, dynamic
quantisation, and hone's targets. Each form has to run, to have at least 95 % of its multiply-accumulates on integer
tactics, and to answer as ONNX Runtime does, with its optimisations or without: no element more than one output level
apart. Where the end is further apart, the model is cut behind every quantised tensor: the first that differs has to be
one level apart at most, in few elements (rounding of values halfway between two codes, which the layers behind make
larger). Prints a line for each form; ends with 1 where one fails. --full: the networks' own sizes (else small ones).
--time: the two engines in turn, too, two threads each. --only: the forms whose name holds the text. --models: float
models in files.
"""
import argparse
import json
import logging
import os
import shutil
import subprocess
import sys
import time
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

try:
    from onnxruntime.quantization.shape_inference import quant_pre_process
except ImportError as missing:
    print(f"SKIP: ONNX Runtime's preparation of models: {missing}")
    sys.exit(77)

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")
ort.set_default_logger_severity(4)

SMALL = {"resnet50": ["--width", "0.25", "--size", "64"], "mobilenetv2": ["--width", "0.5", "--size", "64"],
         "yolov3": ["--width", "0.125", "--size", "64"], "bert_base": ["--width", "0.25", "--size", "32"]}
SHORT = {QuantType.QUInt8: "u8", QuantType.QInt8: "i8"}
INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


def session(path, level=ort.GraphOptimizationLevel.ORT_ENABLE_ALL, threads=1):
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.graph_optimization_level = threads, level
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def draw(inputs, random):
    feed = {}
    for i in inputs:
        dims = [d if isinstance(d, int) else 1 for d in i.shape]
        if i.type in INTEGERS:
            high = 2 if "mask" in i.name or "type" in i.name else 1000
            feed[i.name] = random.integers(1 if "mask" in i.name else 0, high, dims).astype(INTEGERS[i.type])
        else:
            feed[i.name] = random.normal(0, 1, dims).astype(np.float32)
    return feed


class Samples(CalibrationDataReader):
    def __init__(self, inputs):
        random = np.random.default_rng(3)
        self.left = [draw(inputs, random) for _ in range(2)]

    def get_next(self):
        return self.left.pop() if self.left else None


def forms(hone, plain, inputs):
    """Pairs of a form's name and what writes it to a path."""
    made = {}

    def static(name, form, codes, weights, symmetric, per_channel):
        def write(path):
            quantize_static(plain, path, Samples(inputs), quant_format=form, activation_type=codes, weight_type=weights, per_channel=per_channel,
                            extra_options={"ActivationSymmetric": symmetric, "WeightSymmetric": weights == QuantType.QInt8})
        made[name] = write

    for form in (QuantFormat.QDQ, QuantFormat.QOperator):
        for codes, weights in ((QuantType.QUInt8, QuantType.QInt8), (QuantType.QUInt8, QuantType.QUInt8), (QuantType.QInt8, QuantType.QInt8)):
            for symmetric in (False, True):
                for per_channel in (False, True):
                    words = [form.name.lower(), SHORT[codes], SHORT[weights]]
                    words += ["symmetric"] * symmetric + ["channel"] * per_channel
                    static("-".join(words), form, codes, weights, symmetric, per_channel)
    for weights in (QuantType.QInt8, QuantType.QUInt8):
        for per_channel in (False, True):
            made[f"dynamic-{SHORT[weights]}" + "-channel" * per_channel] = \
                lambda path, w=weights, p=per_channel: quantize_dynamic(plain, path, weight_type=w, per_channel=p)
    for words in (["hone"], ["hone", "--symmetric"], ["ort"], ["tensorrt"], ["openvino"]):
        def write(path, words=words):
            subprocess.run([hone, "quantize", plain, "-o", path, "--calib", "random", "-n", "2", "--target", *words],
                           check=True, capture_output=True)
        made["hone-" + "".join(words)] = write
    return made.items()


def levels(model, want):
    """One level of an output: the scale that made its codes, or a 255th of its range."""
    makers = {o: n for n in model.graph.node for o in n.output}
    numbers = {i.name: i for i in model.graph.initializer}
    steps = []
    for o, w in zip(model.graph.output, want):
        node = makers.get(o.name)
        while node is not None and node.op_type in ("Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze"):
            node = makers.get(node.input[0])
        known = node is not None and node.op_type == "DequantizeLinear" and node.input[1] in numbers
        steps.append(float(onnx.numpy_helper.to_array(numbers[node.input[1]]).max()) if known else max(float(np.ptp(w)), 1e-9) / 255)
    return steps


def check(path, hone, folder, timed):
    """What is wrong with a form, and the facts of its line."""
    model = onnx.load(path)
    level = ort.GraphOptimizationLevel
    peer = session(path)
    feed = draw(peer.get_inputs(), np.random.default_rng(7))
    out, words = f"{folder}/out", []
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    for name, x in feed.items():
        np.save(f"{folder}/{name}.npy", x)
        words += ["-i", f"{name}={folder}/{name}.npy"]
    ran = subprocess.run([hone, "run", path, *words, "--output-dir", out, "-t", "1"], capture_output=True, text=True)
    if ran.returncode:
        return ran.stderr.strip(), ""
    names = {f[:-4]: np.load(f"{out}/{f}") for f in os.listdir(out) if f.endswith(".npy")}
    got = [names[o.name] for o in model.graph.output]
    profile = subprocess.run([hone, "profile", path, *words, "-n", "1", "-w", "0", "-t", "1", "--json"], capture_output=True, text=True)
    if profile.returncode:
        return profile.stderr.strip(), ""
    share = json.loads(profile.stdout)["integer_macs_pct"]
    best = []
    for how in (level.ORT_ENABLE_ALL, level.ORT_DISABLE_ALL):
        want = (peer if how == level.ORT_ENABLE_ALL else session(path, how)).run(None, feed)
        steps = levels(model, want)
        apart = max(float(np.abs(g.astype(np.float64) - w).max()) / s for g, w, s in zip(got, want, steps))
        differs = max(float((np.abs(g.astype(np.float64) - w) > 0.5 * s).mean()) for g, w, s in zip(got, want, steps))
        best.append((apart, differs))
    facts = f"{share:6.2f} % integer, {best[0][0]:.2f} levels ({best[0][1]:.2%}), plain {best[1][0]:.2f} ({best[1][1]:.2%})"
    if timed:
        facts += f", ONNX Runtime / hone {ratio(path, hone, words, feed):.2f}"
    wrong = []
    if share < 95:
        wrong.append(f"{share:.1f} % of the MACs are on integers")
    if min(b[0] for b in best) > 1.01:
        first = first_difference(path, hone, folder, feed)
        facts += ", first at {} by {} in {:.3%}".format(*first) if first else ", codes equal"
        if first and (first[1] > 1 or first[2] > 0.05):
            wrong.append("its answer is more than a level from ONNX Runtime's")
    return "; ".join(wrong), facts


def cut(model, name, path):
    """Writes the part of the model that makes one tensor of codes; returns its sessions, optimised and not, and inputs."""
    need, kept = {name}, []
    for node in reversed(model.graph.node):
        if need & set(node.output):
            kept.append(node)
            need |= set(node.input)
    for kind in (onnx.TensorProto.UINT8, onnx.TensorProto.INT8):
        graph = onnx.helper.make_graph(kept[::-1], "cut", [i for i in model.graph.input if i.name in need],
                                       [onnx.helper.make_tensor_value_info(name, kind, None)],
                                       [i for i in model.graph.initializer if i.name in need])
        onnx.save(onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version), path)
        try:
            return [session(path), session(path, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)], [i.name for i in graph.input]
        except Exception:  # codes of the other type
            continue
    return [], []


def first_difference(path, hone, folder, feed):
    """The first quantised tensor that differs: its node, by how many levels, in which part of its elements."""
    model = onnx.load(path)
    shorter, out = f"{folder}/cut.onnx", f"{folder}/out"
    for node in model.graph.node:
        if "Quantize" not in node.op_type and "QLinear" not in node.op_type or node.op_type == "DequantizeLinear":
            continue
        peers, inputs = cut(model, node.output[0], shorter)
        if not inputs:
            continue
        wants = [p.run(None, {k: feed[k] for k in inputs})[0].astype(np.int32) for p in peers]
        words = [w for k in inputs for w in ("-i", f"{k}={folder}/{k}.npy")]
        shutil.rmtree(out, ignore_errors=True)
        subprocess.run([hone, "run", shorter, *words, "--output-dir", out, "-t", "1"], capture_output=True, check=True)
        got = np.load(f"{out}/{[f for f in os.listdir(out) if f.endswith('.npy')][0]}").astype(np.int32)
        most, part = min((int(np.abs(got - want).max()), float((got != want).mean())) for want in wants)
        if most:
            return node.name, most, part
    return None


def ratio(path, hone, words, feed):
    """Best time of ONNX Runtime by hone's, in turn."""
    theirs, ours = [], []
    for _ in range(3):
        s = session(path, threads=2)
        for _ in range(8):
            start = time.perf_counter()
            s.run(None, feed)
            theirs.append(time.perf_counter() - start)
        del s
        said = subprocess.run([hone, "bench", path, *words, "-n", "8", "-t", "2", "--json"], capture_output=True, text=True, check=True)
        ours += [t / 1e3 for t in json.loads(said.stdout)["samples_ms"]]
    return float(np.median(theirs) / np.median(ours))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hone")
    parser.add_argument("folder")
    parser.add_argument("networks", nargs="*", default=list(SMALL))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--models", nargs="*", default=[])
    a = parser.parse_args()
    bad = count = 0
    for name in a.models or a.networks:
        raw, plain, path = f"{a.folder}/raw.onnx", f"{a.folder}/plain.onnx", f"{a.folder}/form.onnx"
        if a.models:
            raw = name
        else:
            subprocess.run([a.hone, "zoo", name, "-b", "1", "-o", raw, *([] if a.full else SMALL[name])], check=True, capture_output=True)
        quant_pre_process(raw, plain, skip_symbolic_shape=True)
        inputs = session(plain).get_inputs()
        for form, write in forms(a.hone, plain, inputs):
            if a.only not in form:
                continue
            try:
                write(path)
                session(path)
            except Exception as error:  # a form that its own tool cannot write or load
                print(f"{os.path.basename(name):12} {form:28} not made: {type(error).__name__}: {str(error)[:100]}", flush=True)
                continue
            wrong, facts = check(path, a.hone, a.folder, a.time)
            count += 1
            bad += bool(wrong)
            print(f"{os.path.basename(name):12} {form:28} {facts}" + (f"  WRONG: {wrong}" if wrong else ""), flush=True)
            for rest in (path, path + ".data", a.folder + "/form.ranges.json"):
                if os.path.exists(rest):
                    os.remove(rest)
    print(f"{count} forms, {bad} wrong")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())
