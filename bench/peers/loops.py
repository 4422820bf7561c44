"""Networks whose time goes into bodies of Loop: caches that grow, decoders that choose a token a trip.

    python3 bench/peers/loops.py FOLDER [NAME...]

Needs `pip install onnx`. Weights are seeded random numbers. Compare them with
`make bench-peers OTHERS=FOLDER PEERS="--parts others"`."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

random = np.random.RandomState(7)
node = helper.make_node


def numbers(*shape):
    return (random.standard_normal(shape) * 0.1).astype(np.float32)


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def loop(path, trips, nodes, states, results, scans, inputs, constants):
    """states: (name in the body, its shape, initial value); results: names of the body's new states, then scans."""
    kinds = [T.INT64 if name.startswith("token") else T.FLOAT for name, _, _ in states]
    body = helper.make_graph(
        nodes + [node("Identity", ["go"], ["on"])], "body",
        [value("trip", T.INT64, []), value("go", T.BOOL, [])] +
        [value(name, kind, shape) for (name, shape, _), kind in zip(states, kinds)],
        [value("on", T.BOOL, [])] + [value(r, kind, shape) for r, (_, shape, _), kind in zip(results, states, kinds)] +
        [value(s, kind, shape) for s, kind, shape in scans])
    outputs = [f"last_{r}" for r in results] + [f"all_{s}" for s, _, _ in scans]
    kinds += [kind for _, kind, _ in scans]
    constants = {**constants, "trips": np.array(trips), "yes": np.array(True)}
    graph = helper.make_graph(
        [node("Loop", ["trips", "yes"] + [first for _, _, first in states], outputs, body=body)], "loop",
        inputs, [value(o, kind, None) for o, kind in zip(outputs, kinds)],
        [numpy_helper.from_array(c, name) for name, c in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def joined(rows):
    """Nothing but a cache that grows by a row a trip."""
    def make(path):
        loop(path, 200, [node("Concat", ["past", "x"], ["present"], axis=0), node("Identity", ["x"], ["same"])],
             [("x", [1, 64], "row"), ("past", [None, 64], "before")], ["same", "present"], [],
             [value("row", T.FLOAT, [1, 64])], {"before": numbers(rows, 64)})
    return make


def history(path):
    loop(path, 100, [node("Tanh", ["x"], ["t"]), node("Concat", ["past", "t"], ["present"], axis=0),
                     node("ReduceMean", ["present"], ["mean"], axes=[0], keepdims=1), node("Add", ["mean", "t"], ["y"])],
         [("x", [1, 64], "row"), ("past", [None, 64], "before")], ["y", "present"], [],
         [value("row", T.FLOAT, [1, 64])], {"before": numbers(0, 64)})


def attention(width, heads):
    """A token a trip: projections, attention over what has been kept, LayerNormalization."""
    def make(path):
        size = width // heads
        nodes = []
        for part in "qkv":
            nodes += [node("MatMul", ["x", "w" + part], [part + "1"]), node("Reshape", [part + "1", "split"], [part + "2"]),
                      node("Transpose", [part + "2"], [part], perm=[0, 2, 1, 3])]
        nodes += [node("Concat", ["keys", "k"], ["new_keys"], axis=2),
                  node("Concat", ["values", "v"], ["new_values"], axis=2),
                  node("Transpose", ["new_keys"], ["turned"], perm=[0, 1, 3, 2]), node("MatMul", ["q", "turned"], ["s1"]),
                  node("Mul", ["s1", "scale"], ["s2"]), node("Softmax", ["s2"], ["p"], axis=-1),
                  node("MatMul", ["p", "new_values"], ["o1"]), node("Transpose", ["o1"], ["o2"], perm=[0, 2, 1, 3]),
                  node("Reshape", ["o2", "whole"], ["o3"]), node("MatMul", ["o3", "wo"], ["o4"]),
                  node("Add", ["o4", "x"], ["o5"]), node("LayerNormalization", ["o5", "ones", "zeros"], ["y"], axis=-1)]
        constants = {"w" + part: numbers(width, width) for part in "qkvo"}
        constants.update(split=np.array([1, 1, heads, size]), whole=np.array([1, 1, width]),
                         scale=np.float32(size ** -0.5), ones=np.ones(width, np.float32),
                         zeros=np.zeros(width, np.float32), no_keys=numbers(1, heads, 0, size),
                         no_values=numbers(1, heads, 0, size))
        kept = [1, heads, None, size]
        loop(path, 64, nodes, [("x", [1, 1, width], "row"), ("keys", kept, "no_keys"), ("values", kept, "no_values")],
             ["y", "new_keys", "new_values"], [], [value("row", T.FLOAT, [1, 1, width])], constants)
    return make


def greedy(path, width=64, words=500):
    nodes = [node("Gather", ["table", "token"], ["x"]), node("MatMul", ["h", "wh"], ["m"]), node("Add", ["x", "m"], ["a"]),
             node("Tanh", ["a"], ["state"]), node("MatMul", ["state", "w1"], ["f1"]), node("Relu", ["f1"], ["f2"]),
             node("MatMul", ["f2", "w2"], ["f3"]), node("Add", ["f3", "state"], ["f4"]),
             node("MatMul", ["f4", "wv"], ["scores"]), node("ArgMax", ["scores"], ["next"], axis=-1, keepdims=0),
             node("Identity", ["next"], ["chosen"])]
    constants = {"table": numbers(words, width), "wh": numbers(width, width), "w1": numbers(width, 4 * width),
                 "w2": numbers(4 * width, width), "wv": numbers(width, words), "h0": numbers(1, width)}
    loop(path, 32, nodes, [("token", [1], "first"), ("h", [1, width], "h0")], ["next", "state"],
         [("chosen", T.INT64, [1])], [value("first", T.INT64, [1])], constants)


MODELS = {"cache joined": joined(0), "cache joined, 512 rows": joined(512), "cache and its mean": history,
          "attention over a cache, 64": attention(64, 4), "attention over a cache, 256": attention(256, 8),
          "greedy decoder": greedy}


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    for name, make in MODELS.items():
        if not names or name in names:
            make(os.path.join(folder, name.replace(",", "").replace(" ", "_") + ".onnx"))


if __name__ == "__main__":
    main()
