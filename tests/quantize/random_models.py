"""Random small quantised models, in hone and in ONNX Runtime.

usage: random_models.py HONE FOLDER [FIRST COUNT]

Each seed makes a float network of a few operators and has ONNX Runtime's own tools write it as Q/DQ, as QOperator or
dynamically quantised. hone's outputs have to be ONNX Runtime's, or those of ONNX Runtime without optimisations, up to one
level in a few elements: two engines may round a tie either way. Prints a line for each model that is not, and ends with 1.
"""
import logging
import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")
ort.set_default_logger_severity(4)


class Network:
    """A chain of operators with side branches, float, with its shape followed along."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.words = [], [], []
        r = self.random
        self.input = [int(r.choice([1, 1, 2])), int(r.choice([3, 4, 8, 16, 17])), int(r.choice([5, 8, 12])), int(r.choice([5, 8, 9]))]
        self.value, self.shape, self.seen = "x", list(self.input), []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op, inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"n{len(self.nodes)}", **attributes))
        return names[-1]

    def weights(self, shape, fan_in):
        return self.constant(self.random.normal(0, 1 / np.sqrt(fan_in), shape).astype(np.float32))

    def biased(self, inputs, n):
        return inputs + [self.constant(self.random.normal(0, 0.3, n).astype(np.float32))] if self.random.integers(0, 3) else inputs

    # Each operator leaves self.value and self.shape, or returns False where it does not fit.
    def conv(self, depthwise=False):
        r, (batch, channels, high, wide) = self.random, self.shape
        k, stride, dilation = int(r.choice([1, 1, 3, 5])), int(r.choice([1, 1, 2])), int(r.choice([1, 1, 2]))
        group = channels if depthwise else 2 if channels % 2 == 0 and not r.integers(0, 4) else 1
        filters = channels if depthwise else int(r.choice([4, 8, 16, 18]))
        pads = [int(p) for p in r.integers(0, k // 2 + 1, 4)]
        out = [(n + pads[i] + pads[i + 2] - (k - 1) * dilation - 1) // stride + 1 for i, n in enumerate((high, wide))]
        if min(out) < 1:
            return False
        w = self.weights([filters, channels // group, k, k], channels // group * k * k)
        self.value = self.add("Conv", self.biased([self.value, w], filters), kernel_shape=[k, k], strides=[stride, stride],
                              dilations=[dilation, dilation], pads=pads, group=group)
        self.shape = [batch, filters] + out

    def depthwise(self):
        return self.conv(True)

    def activation(self):
        op = str(self.random.choice(["Relu", "Clip", "LeakyRelu", "Sigmoid", "HardSwish"]))
        ends = [self.constant(np.float32(0)), self.constant(np.float32(6))] if op == "Clip" else []
        self.value = self.add(op, [self.value] + ends, **({"alpha": 0.1} if op == "LeakyRelu" else {}))

    def conv_activation(self):
        return self.conv() is not False and self.activation()

    def binary(self):
        same = [v for v, shape in self.seen if shape == self.shape]
        other = same[0] if same else self.constant(self.random.normal(0, 1, [1, self.shape[1]] + [1] * (len(self.shape) - 2)).astype(np.float32))
        pair = [self.value, other] if self.random.integers(0, 2) else [other, self.value]
        self.value = self.add(str(self.random.choice(["Add", "Mul", "Sub", "Max"])), pair)

    def pool(self):
        if min(self.shape[2:]) < 3:
            return False
        op, stride = str(self.random.choice(["MaxPool", "AveragePool"])), int(self.random.choice([1, 2]))
        self.value = self.add(op, [self.value], kernel_shape=[3, 3], strides=[stride, stride], pads=[1, 1, 1, 1])
        self.shape[2:] = [(n - 1) // stride + 1 for n in self.shape[2:]]

    def mean(self):
        self.value = self.add("GlobalAveragePool", [self.value])
        self.shape[2:] = [1, 1]

    def concat(self):
        fits = [(v, s) for v, s in self.seen if len(s) == 4 and s[2:] == self.shape[2:]]
        other, shape = fits[-1] if fits else (self.value, self.shape)
        self.value = self.add("Concat", [self.value, other], axis=1)
        self.shape[1] += shape[1]

    def resize(self):
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        self.value = self.add("Resize", [self.value, "", scales], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        self.shape[2:] = [2 * n for n in self.shape[2:]]

    def transpose(self):
        self.value = self.add("Transpose", [self.value], perm=[0, 1, 3, 2])
        self.shape[2:] = self.shape[:1:-1]

    def pad(self):
        self.value = self.add("Pad", [self.value, self.constant(np.array([0, 0, 1, 1, 0, 0, 0, 2])), self.constant(np.float32(0))], mode="constant")
        self.shape[2:] = [self.shape[2] + 1, self.shape[3] + 3]

    def split(self):
        if self.shape[1] < 2:
            return False
        self.value = self.add("Split", [self.value, self.constant(np.array([1, self.shape[1] - 1]))], outputs=2, axis=1)
        self.shape[1] -= 1

    def flatten(self):
        self.value = self.add("Reshape", [self.value, self.constant(np.array([self.shape[0], -1]))])
        self.shape = [self.shape[0], int(np.prod(self.shape[1:]))]

    def product(self):
        n, k, transposed = int(self.random.choice([5, 8, 31])), self.shape[1], int(self.random.integers(0, 2))
        if self.random.integers(0, 2):
            w = self.weights([n, k] if transposed else [k, n], k)
            self.value = self.add("Gemm", self.biased([self.value, w], n), transB=transposed)
        else:
            self.value = self.add("MatMul", [self.value, self.weights([k, n], k)])
        self.shape = [self.shape[0], n]

    def grow(self):
        pictures = ["conv", "conv", "conv_activation", "depthwise", "activation", "binary", "pool", "mean", "concat", "resize",
                    "transpose", "pad", "split", "flatten"]
        matrices = ["product", "product", "activation", "binary"]
        word = str(self.random.choice(pictures if len(self.shape) == 4 else matrices))
        before = (self.value, list(self.shape))
        if getattr(self, word)() is not False:
            self.words.append(word)
            self.seen.append(before)

    def save(self, path):
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.input)],
                                  [helper.make_tensor_value_info(self.value, TensorProto.FLOAT, None)], self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Samples(CalibrationDataReader):
    def __init__(self, x):
        self.left = [x, x * 0.7]

    def get_next(self):
        return {"x": self.left.pop()} if self.left else None


def make(seed, folder):
    """Writes the model of a seed; returns its path, its input and what it is made of, or None."""
    net = Network(seed)
    for _ in range(int(net.random.integers(2, 7))):
        net.grow()
    if not net.nodes or np.prod(net.shape) > 60000:
        return None
    plain, path = f"{folder}/float.onnx", f"{folder}/model.onnx"
    net.save(plain)
    r, x = net.random, net.random.normal(0, 0.6, net.input).astype(np.float32)
    form = ["qdq", "qoperator", "dynamic"][seed % 3]
    kinds = [(QuantType.QUInt8, QuantType.QInt8), (QuantType.QUInt8, QuantType.QUInt8), (QuantType.QInt8, QuantType.QInt8)]
    codes, weights = kinds[int(r.integers(0, 3))]
    if form == "dynamic":
        quantize_dynamic(plain, path, weight_type=weights, per_channel=bool(r.integers(0, 2)))
    else:
        quantize_static(plain, path, Samples(x), activation_type=codes, weight_type=weights, per_channel=bool(r.integers(0, 2)),
                        quant_format=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator)
    return path, x, form + ": " + ", ".join(net.words)


def peer(path, x, level):
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.graph_optimization_level = 1, level
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0].astype(np.float64)


def fault(path, x, words, hone, folder):
    """What is wrong with hone's answer, or None."""
    ties = 0.1 if "pool" in words or "mean" in words else 0.02  # means of a few codes often lie halfway between two
    levels = ort.GraphOptimizationLevel
    wants = [peer(path, x, levels.ORT_DISABLE_ALL), peer(path, x, levels.ORT_ENABLE_ALL)]
    np.save(f"{folder}/x.npy", x)
    out = f"{folder}/out"
    shutil.rmtree(out, ignore_errors=True)
    ran = subprocess.run([hone, "run", path, "--input", f"x={folder}/x.npy", "--output-dir", out, "-t", "1"], capture_output=True, text=True)
    if ran.returncode:
        return ran.stderr.strip()
    got = np.load(f"{out}/{[f for f in os.listdir(out) if f.endswith('.npy')][0]}").astype(np.float64)
    said = []
    for want in wants:
        if got.shape != want.shape:
            return f"shape {got.shape}, not {want.shape}"
        apart, reach = np.abs(got - want), max(float(np.ptp(want)), 1e-9)
        far = float((apart > 1e-5 * reach).mean())
        if apart.max(initial=0) <= 0.016 * reach and far <= ties or far == 0:
            return None
        said.append(f"{apart.max() / reach:.3g} of the range, {far:.2%} of the elements")
    return " / ".join(said)


def main():
    hone, folder = sys.argv[1:3]
    first, count = [int(v) for v in sys.argv[3:5]] or (0, 90)
    ran = wrong = 0
    for seed in range(first, first + count):
        made = make(seed, folder)
        if made:
            said, ran = fault(*made, hone, folder), ran + 1
            if said:
                print(f"seed {seed}, {made[2]}: {said}")
                wrong += 1
    print(f"{ran} models, {wrong} wrong")
    return 1 if wrong or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
