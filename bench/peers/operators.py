"""Models of one operator each: what newer exporters and ONNX Runtime's optimiser write instead of the operators' parts. Numbers
that say where in a cache something stands are constants, the rest is input. With them small networks: small_models.py."""
import os

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper, save

from small_models import small_models

MICROSOFT = "com.microsoft"


def one(op, inputs, outputs, domain="", opset=24, trees_opset=3, **attributes):
    """inputs: None (left out), a shape (an f32 input), (a shape, a type) or an array (a constant).
    outputs: how many f32 ones, or the types."""
    names, ports, constants = [], [], []
    for i, v in enumerate(inputs):
        names.append("" if v is None else "i%d" % i)
        if isinstance(v, np.ndarray):
            constants.append(numpy_helper.from_array(v, names[-1]))
        elif v is not None:
            shape, kind = v if isinstance(v[0], (list, tuple)) else (v, T.FLOAT)
            ports.append(helper.make_tensor_value_info(names[-1], kind, shape))
    kinds = [T.FLOAT] * outputs if isinstance(outputs, int) else outputs
    results = [helper.make_tensor_value_info("o%d" % i, kind, None) for i, kind in enumerate(kinds)]
    node = helper.make_node(op, names, [r.name for r in results], domain=domain, **attributes)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1), helper.make_opsetid("ai.onnx.ml", trees_opset)]
    return helper.make_model(helper.make_graph([node], "one", ports, results, constants), opset_imports=opsets, ir_version=10)


def floats(*shape):
    return np.random.RandomState(1).standard_normal(shape).astype(np.float32)


def numbers(values, kind=np.int32):
    return np.array(values, kind)


def trees(count, depth, features, r=np.random.RandomState(1)):
    """Complete trees with a sum as their result."""
    inner = 2 ** depth - 1
    n = dict(nodes_treeids=[], nodes_nodeids=[], nodes_featureids=[], nodes_modes=[], nodes_values=[], nodes_truenodeids=[],
             nodes_falsenodeids=[], target_treeids=[], target_nodeids=[], target_ids=[], target_weights=[])
    for t in range(count):
        for i in range(2 * inner + 1):
            leaf = i >= inner
            for key, v in (("treeids", t), ("nodeids", i), ("featureids", 0 if leaf else int(r.randint(features))),
                           ("modes", "LEAF" if leaf else "BRANCH_LEQ"), ("values", 0.0 if leaf else float(r.standard_normal())),
                           ("truenodeids", 0 if leaf else 2 * i + 1), ("falsenodeids", 0 if leaf else 2 * i + 2)):
                n["nodes_" + key].append(v)
            if leaf:
                for key, v in (("treeids", t), ("nodeids", i), ("ids", 0), ("weights", float(r.standard_normal()))):
                    n["target_" + key].append(v)
    return dict(n, n_targets=1)


def classes(count, depth, features, n):
    """The same trees, whose leaves vote for one of n classes in turn."""
    t = trees(count, depth, features)
    t.pop("n_targets")
    of = {"class_" + key: t.pop("target_" + key) for key in ("treeids", "nodeids", "ids", "weights")}
    return dict(t, **dict(of, class_ids=[i % n for i in range(len(of["class_ids"]))]), classlabels_int64s=list(range(n)))


def leaves_apart(count, depth, features, r=np.random.RandomState(1)):
    """Such trees as opset 5 writes them: nodes and leaves in lists of their own."""
    inner, leaves = 2 ** depth - 1, 2 ** depth
    last = [2 * i + 1 >= inner for i in range(inner)]
    below = lambda t, i, k: t * leaves + 2 * i + k - inner if last[i] else t * inner + 2 * i + k
    return dict(n_targets=1, tree_roots=[t * inner for t in range(count)],
                nodes_featureids=[int(f) for f in r.randint(features, size=count * inner)],
                nodes_truenodeids=[below(t, i, 1) for t in range(count) for i in range(inner)],
                nodes_falsenodeids=[below(t, i, 2) for t in range(count) for i in range(inner)],
                nodes_trueleafs=[int(l) for l in last] * count, nodes_falseleafs=[int(l) for l in last] * count,
                nodes_splits=numpy_helper.from_array(r.standard_normal(count * inner).astype(np.float32)),
                nodes_modes=numpy_helper.from_array(np.zeros(count * inner, np.uint8)), leaf_targetids=[0] * (count * leaves),
                leaf_weights=numpy_helper.from_array(r.standard_normal(count * leaves).astype(np.float32)))


def caches():
    angle = np.arange(2048)[:, None] / 10000.0 ** (np.arange(32) / 32)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def vectors(kernel, count=600, features=64):
    """A support vector machine of two classes."""
    return dict(kernel_type=kernel, kernel_params=[0.05, 1.0, 3.0], support_vectors=floats(count * features).tolist(),
                coefficients=floats(count).tolist(), rho=[0.1], vectors_per_class=[count // 2, count - count // 2],
                classlabels_ints=[0, 1], post_transform="NONE")


def counted_and_compared():
    """What ran by its definition alone: running products, different numbers, extremes of bytes, places of maxima, losses."""
    r, cube = np.random.RandomState(1), [100, 100, 100]
    for op in ("CumProd", "CumSum"):
        for kind in ("FLOAT", "DOUBLE", "INT32"):
            for axis in (0, 2):
                yield ("%s, %s, axis %d" % (op, kind, axis),
                       one(op, [(cube, T.DataType.Value(kind)), numbers(axis, np.int64)], [T.DataType.Value(kind)], opset=26))
    for kind in ("FLOAT", "DOUBLE", "INT64"):
        for shape, axis in (([10000, 100], 0), (cube, 1), ([1, 1000000], 1)):
            yield ("CumSum, %s of %s, axis %d" % (kind, " x ".join(map(str, shape)), axis),
                   one("CumSum", [(shape, T.DataType.Value(kind)), numbers(axis, np.int64)], [T.DataType.Value(kind)], opset=26))
    for kind in ("FLOAT", "INT8"):
        yield "Unique, " + kind, one("Unique", [(cube, T.DataType.Value(kind))], [T.DataType.Value(kind)] + [T.INT64] * 3)
    for axis in (0, 1, 2):
        yield "ReduceMax, UINT8, axis %d" % axis, one("ReduceMax", [(cube, T.UINT8), numbers([axis], np.int64)], [T.UINT8])
    maps, places = [1, 64, 56, 56], np.arange(64 * 56 * 56, dtype=np.int64).reshape(1, 64, 56, 56)[:, :, ::2, ::2].copy()
    yield "MaxPool, places, 2", one("MaxPool", [maps], [T.FLOAT, T.INT64], opset=12, kernel_shape=[2, 2], strides=[2, 2])
    yield "MaxPool, places, 3", one("MaxPool", [maps], [T.FLOAT, T.INT64], opset=12, kernel_shape=[3, 3], pads=[1] * 4)
    yield "MaxUnpool", one("MaxUnpool", [[1, 64, 28, 28], places], 1, opset=11, kernel_shape=[2, 2], strides=[2, 2])
    for shape in ([2000, 100], [64, 30000], [4, 21, 64, 64]):
        labels = r.randint(0, shape[1], shape[:1] + shape[2:]).astype(np.int64)
        for op in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"):
            yield "%s, %s" % (op, "x".join(map(str, shape))), one(op, [shape, labels], 1, opset=13)
    for kind in ("FLOAT", "INT8"):
        yield ("Compress, " + kind,
               one("Compress", [(cube, T.DataType.Value(kind)), r.rand(100) > 0.5], [T.DataType.Value(kind)], axis=1))
    yield ("Col2Im", one("Col2Im", [[1, 576, 3136], numbers([56, 56], np.int64), numbers([3, 3], np.int64)], 1, pads=[1] * 4))
    yield ("DeformConv", one("DeformConv", [maps, floats(64, 64, 3, 3), [1, 18, 56, 56]], 1, opset=22, pads=[1] * 4))
    classical, weights = dict(domain="ai.onnx.ml"), lambda n: [float(v) for v in r.standard_normal(n)]
    yield "LinearRegressor", one("LinearRegressor", [[2000, 64]], 1, coefficients=weights(640), targets=10, **classical)
    yield ("LinearClassifier", one("LinearClassifier", [[2000, 64]], [T.INT64, T.FLOAT], coefficients=weights(640), intercepts=weights(10),
                                   classlabels_ints=list(range(10)), post_transform="SOFTMAX", **classical))
    named = {"classlabels_strings": ["class %d" % i for i in range(3)]}
    yield ("LinearClassifier, labels of text", one("LinearClassifier", [[500, 64]], [T.STRING, T.FLOAT], coefficients=weights(192),
                                                   intercepts=weights(3), post_transform="SOFTMAX", **named, **classical))
    for kernel in ("LINEAR", "POLY", "SIGMOID"):
        yield ("SVMRegressor, " + kernel,
               one("SVMRegressor", [[2000, 64]], 1, coefficients=weights(300), kernel_params=[0.01, 0.1, 3.0], kernel_type=kernel,
                   n_supports=300, rho=[0.1], support_vectors=weights(300 * 64), **classical))
    yield "Pow, INT32 by 3", one("Pow", [([1000000], T.INT32), np.float32([3])], [T.INT32], opset=15)
    yield "Pow, INT32 by FLOAT", one("Pow", [([1000000], T.INT32), (r.randint(0, 4, 1000000)).astype(np.float32)], [T.INT32], opset=15)
    rows = r.randint(0, 200, (100, 1)).astype(np.int64)
    yield ("ScatterND, add, UINT8",
           one("ScatterND", [([200, 500], T.UINT8), rows, ([100, 500], T.UINT8)], [T.UINT8], opset=18, reduction="add"))


def plain_types():
    """Casts, and what runs on types for which there are few kernels."""
    million = [1000, 1000]
    for source, to in (("FLOAT", "BOOL"), ("FLOAT", "INT32"), ("FLOAT", "INT64"), ("FLOAT", "UINT8"), ("DOUBLE", "FLOAT"),
                       ("INT64", "INT32"), ("INT64", "BOOL"), ("BOOL", "INT64")):
        yield "Cast, %s to %s" % (source, to), one("Cast", [(million, T.DataType.Value(source))], [T.DataType.Value(to)], to=T.DataType.Value(to))
    cube, axis = [64, 32, 64], numbers([1], np.int64)
    for op in ("ReduceMax", "ReduceSum"):
        yield op + ", DOUBLE", one(op, [(cube, T.DOUBLE), axis], [T.DOUBLE], keepdims=0)
    for kind in ("DOUBLE", "INT64", "INT32"):
        yield "ArgMax, " + kind, one("ArgMax", [(cube, T.DataType.Value(kind))], [T.INT64], axis=2, keepdims=0)
    for rows in ([2000, 3], [2000, 10], [20000, 20]):
        yield "ArgMax, rows of %d" % rows[1], one("ArgMax", [rows], [T.INT64], axis=1, keepdims=0)
    yield "CumSum, DOUBLE", one("CumSum", [(cube, T.DOUBLE), numbers(1, np.int64)], [T.DOUBLE])
    yield from counted_and_compared()
    for kernel in ("LINEAR", "POLY", "RBF"):
        yield "SVMClassifier, " + kernel, one("SVMClassifier", [[256, 64]], [T.INT64, T.FLOAT], domain="ai.onnx.ml", **vectors(kernel))


def bytes_and_halves():
    """What is moved in 16 bits, masks of bool, and products of codes whose sums stay integers."""
    for rows, columns in ((32, 32), (300, 350), (3000, 3500)):
        size = "%d x %d" % (rows, columns)
        for op in ("And", "Equal"):
            yield "%s of bool, %s" % (op, size), one(op, [([rows, columns], T.BOOL)] * 2, [T.BOOL])
        yield "And of bool, a column, %s" % size, one("And", [([rows, columns], T.BOOL), ([rows, 1], T.BOOL)], [T.BOOL])
        yield "Not of bool, %s" % size, one("Not", [([rows, columns], T.BOOL)], [T.BOOL])
        for kind in ("FLOAT16", "INT16"):
            x = ([rows, columns], T.DataType.Value(kind))
            yield "Transpose, %s, %s" % (kind, size), one("Transpose", [x], [x[1]], perm=[1, 0])
        x = ([rows, columns], T.FLOAT16)
        yield "Concat, FLOAT16, %s" % size, one("Concat", [x, x], [x[1]], axis=1)
        yield "Gather, FLOAT16, %s" % size, one("Gather", [x, numbers(range(rows // 2), np.int64)], [x[1]])
        yield "Softmax, %s" % size, one("Softmax", [[rows, columns]], 1)
    random = np.random.RandomState(1)
    for n in (32, 256, 1024):
        for kind in (np.uint8, np.int8):
            codes = random.randint(0, 100, (n, n)).astype(kind)
            yield "MatMulInteger, u8 by %s, %d" % (np.dtype(kind), n), one("MatMulInteger", [([n, n], T.UINT8), codes], [T.INT32])
        yield "MatMulInteger, u8 by u8 of the run, %d" % n, one("MatMulInteger", [([n, n], T.UINT8)] * 2, [T.INT32])


def models():
    """(label, model): the sizes are those of small language models: 16 heads of 64 values, 4 of them for keys and values."""
    cos, sin = caches()
    group = dict(domain=MICROSOFT, num_heads=16, kv_num_heads=4)
    heads = dict(q_num_heads=16, kv_num_heads=16)
    hidden = dict(domain=MICROSOFT, opset=21)
    wide = [8, 128, 768]
    yield "Attention", one("Attention", [[1, 128, 1024]] * 3, 1, **heads)
    yield "Attention, mask", one("Attention", [[1, 128, 1024]] * 3 + [[128, 128]], 1, **heads)
    yield "Attention, causal", one("Attention", [[1, 128, 1024]] * 3, 1, is_causal=1, **heads)
    window = dict(is_causal=1, left_window_size=127)
    yield "Attention, window", one("Attention", [[1, 512, 1024]] * 3, 1, opset=25, **heads, **window)
    yield "Attention, heads in groups", one("Attention", [[1, 16, 128, 64], [1, 4, 128, 64], [1, 4, 128, 64]], 1)
    yield "Attention, a token with cache", one("Attention", [[1, 16, 1, 64]] * 3 + [None] + [[1, 16, 1023, 64]] * 2, 3)
    yield "MultiHeadAttention", one("MultiHeadAttention", [[1, 128, 1024]] * 3, 1, domain=MICROSOFT, num_heads=16)
    for what, n, past in (("prompt", 128, 0), ("a token", 1, 1023)):
        shared = [numbers([n + past - 1]), numbers(n + past)]
        cache = [[1, 4, past, 64]] * 2 if past else [None, None]
        qkv = [[1, n, 1024], [1, n, 256], [1, n, 256]]
        yield "GroupQueryAttention, " + what, one("GroupQueryAttention", qkv + cache + shared, 3, **group)
        yield "GroupQueryAttention, %s, turned" % what, one("GroupQueryAttention", qkv + cache + shared + [cos, sin], 3,
                                                            do_rotary=1, **group)
    yield "GroupQueryAttention, window", one("GroupQueryAttention", [[1, 512, 1024], [1, 512, 256], [1, 512, 256], None, None, numbers([511]),
                                                                     numbers(512)], 3, local_window_size=128, **group)
    # The new token's exponent is below 0, so that states do not grow without end.
    for rule in ("linear", "gated", "delta", "gated_delta"):
        for what, n in (("a token", 1), ("prompt", 128)):
            gates = [-np.abs(floats(1, n, 16)) if "gated" in rule else None] + ([np.abs(floats(1, n, 16)) / 64] if "delta" in rule else [])
            yield "LinearAttention, %s, %s" % (rule, what), one("LinearAttention", [[1, n, 1024]] * 3 + [[1, 16, 64, 64]] + gates, 2,
                                                                opset=27, update_rule=rule, **heads)
    for what, n in (("a token", 1), ("prompt", 128)):
        yield "CausalConvWithState, " + what, one("CausalConvWithState", [[1, 2048, n], floats(2048, 1, 4), floats(2048), [1, 2048, 3]], 2,
                                                  opset=27, activation="silu")
    for what, n in (("a token", 1), ("prompt", 64)): # the layers of Qwen3-Next
        net = {"gate_activation": "softplus", "beta_activation": "sigmoid", "qk_l2_norm": 1}
        yield "GatedDeltaNet, " + what, one("GatedDeltaNet", [[1, n, 16, 128], [1, n, 16, 128], [1, n, 32, 128], None, [1, n, 32],
                                                              [1, n, 32], [1, 32, 128, 128], floats(32), floats(32)], 2,
                                            domain=MICROSOFT, **net)
        yield "LinearAttention, Microsoft's, " + what, one(
            "LinearAttention", [[1, n, 2048], [1, n, 2048], [1, n, 4096], [1, 32, 128, 128], -np.abs(floats(1, n, 32)),
                                np.abs(floats(1, n, 32)) / 128], 2, domain=MICROSOFT, q_num_heads=16, kv_num_heads=32)
        yield "CausalConvWithState, Microsoft's, " + what, one(
            "CausalConvWithState", [[1, 8192, n], floats(8192, 1, 4), None, [1, 8192, 3]], 2, domain=MICROSOFT, activation="silu")
    yield "RMSNormalization", one("RMSNormalization", [wide, [768]], 1)
    yield "SimplifiedLayerNormalization", one("SimplifiedLayerNormalization", [wide, [768]], 1, opset=21)
    yield "SkipLayerNormalization", one("SkipLayerNormalization", [wide, wide, [768], [768]], 1, **hidden)
    yield "SkipSimplifiedLayerNormalization", one("SkipSimplifiedLayerNormalization", [wide, wide, [768]], 1, **hidden)
    place = numbers(np.arange(128)[None], np.int64)
    yield "RotaryEmbedding", one("RotaryEmbedding", [[1, 16, 128, 64], cos, sin, place], 1)
    yield "RotaryEmbedding, Microsoft's", one("RotaryEmbedding", [[1, 16, 128, 64], place, cos, sin], 1, **hidden)
    ids = ([8, 128], T.INT32)
    yield "EmbedLayerNormalization", one("EmbedLayerNormalization", [ids, None, floats(30522, 768), floats(512, 768), None,
                                                                     floats(768), floats(768)],
                                                         [T.FLOAT, T.INT32], **hidden)
    codes = np.random.RandomState(1).randint(0, 256, (2048, 64, 16)).astype(np.uint8)
    scales = np.abs(floats(2048 * 64)) / 16
    for rows in (1, 128):
        yield "MatMulNBits, %d rows" % rows, one("MatMulNBits", [[rows, 2048], codes, scales], 1, K=2048, N=2048, bits=4, block_size=32,
                                                 **hidden)
    yield "GatherBlockQuantized", one("GatherBlockQuantized", [codes.reshape(2048, 1024), ([1, 128], T.INT64), scales.reshape(2048, 64)],
                                      1, bits=4, block_size=32, gather_axis=0, quantize_axis=1, **hidden)
    for xs, ws, how in (([1, 64, 56, 56], [64, 64, 3, 3], dict(pads=[1] * 4)), ([1, 256, 28, 28], [128, 256, 1, 1], {}),
                        ([1, 96, 56, 56], [96, 1, 3, 3], dict(pads=[1] * 4, group=96))):
        weights = np.random.RandomState(1).randint(0, 256, ws).astype(np.uint8)
        yield ("ConvInteger, %d channels" % xs[1],
               one("ConvInteger", [(xs, T.UINT8), weights, numbers(9, np.uint8), numbers(128, np.uint8)], [T.INT32], **how))
    yield "Swish", one("Swish", [wide], 1)
    yield "QuickGelu", one("QuickGelu", [wide], 1, **hidden)
    yield "Pow, cube", one("Pow", [[64, 2048], np.float32([3])], 1)
    yield "BiasGelu", one("BiasGelu", [wide, [768]], 1, **hidden)
    yield "FastGelu", one("FastGelu", [wide, [768]], 1, **hidden)
    boxes = np.random.RandomState(1).uniform(0, 0.4, (32, 4)).astype(np.float32)
    boxes[:, 2:] += 0.5
    yield "CropAndResize", one("CropAndResize", [[1, 64, 56, 56], boxes, np.zeros(32, np.int32), numbers([14, 14])], 1, **hidden)
    yield "Inverse", one("Inverse", [[64, 16, 16]], 1, **hidden)
    grid = np.random.RandomState(1).uniform(-1, 1, (1, 56, 56, 2)).astype(np.float32)
    few = np.random.RandomState(1).uniform(-1, 1, (1, 224, 224, 2)).astype(np.float32)
    yield "GridSample", one("GridSample", [[1, 64, 56, 56], grid], 1, opset=22)
    yield "GridSample, Microsoft's", one("GridSample", [[1, 64, 56, 56], grid], 1, **hidden)
    yield "GridSample, cubic", one("GridSample", [[1, 64, 56, 56], grid], 1, opset=22, mode="cubic", padding_mode="reflection")
    yield "GridSample, 3 channels", one("GridSample", [[1, 3, 224, 224], few], 1, opset=22, padding_mode="border")
    samples, forest = [[1024, 32]], dict(domain="ai.onnx.ml")
    yield "TreeEnsembleRegressor", one("TreeEnsembleRegressor", samples, 1, **forest, **trees(100, 6, 32))
    yield "TreeEnsembleRegressor, a row", one("TreeEnsembleRegressor", [[1, 32]], 1, **forest, **trees(100, 6, 32))
    yield "TreeEnsembleClassifier", one("TreeEnsembleClassifier", samples, [T.INT64, T.FLOAT], **forest, **classes(100, 6, 32, 3))
    named = dict(classes(60, 6, 32, 3), classlabels_strings=["class %d" % i for i in range(3)])
    named.pop("classlabels_int64s")
    yield "TreeEnsembleClassifier, labels of text", one("TreeEnsembleClassifier", samples, [T.STRING, T.FLOAT], **forest, **named)
    yield "TreeEnsemble", one("TreeEnsemble", samples, 1, trees_opset=5, **forest, **leaves_apart(100, 6, 32))
    yield from plain_types()
    yield from bytes_and_halves()
    yield from small_models()


def operators(folder, wanted=()):
    """(label, path) of each, or of those whose label begins with a wanted word."""
    for label, model in models():
        if wanted and not label.startswith(tuple(wanted)):
            continue
        path = os.path.join(folder, "".join(c if c.isalnum() else "_" for c in label) + ".onnx")
        save(model, path)
        yield label, path
