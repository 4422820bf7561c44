"""Operators of com.microsoft against ONNX Runtime, on random numbers, by the references and fast."""

import os
import tempfile
import unittest

import numpy as np

try:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as e:
    raise unittest.SkipTest("no onnxruntime") from e

import hone
from hone import backend

RANDOM = np.random.default_rng(11)
HEADS, SIZE = 2, 8
HIDDEN = HEADS * SIZE
SCORES = ("MultiHeadAttention", "DecoderMaskedMultiHeadAttention")  # whose fourth output says its type itself


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.normal(0, 1, shape).astype("f")


def codes(*shape: int, dtype: str = "uint8") -> np.ndarray:
    low, high = (0, 256) if dtype == "uint8" else (-128, 128)
    return RANDOM.integers(low, high, shape).astype(dtype)


def model_of(op: str, inputs: dict, outputs: int, constants: tuple, domain: str, attributes: dict) -> bytes:
    """inputs: name -> array or None (left out); those in `constants` become initializers."""
    given = {k: v for k, v in inputs.items() if v is not None}
    node = helper.make_node(op, [k if v is not None else "" for k, v in inputs.items()],
                            [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    kind = {k: helper.np_dtype_to_tensor_dtype(v.dtype) for k, v in given.items()}
    graph = helper.make_graph(
        [node], op, [helper.make_tensor_value_info(k, kind[k], v.shape) for k, v in given.items() if k not in constants],
        [helper.make_tensor_value_info("y3", TensorProto.FLOAT, None) if op in SCORES and i == 3 else
         helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)],
        initializer=[onnx.numpy_helper.from_array(given[k], k) for k in constants])
    return helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 16), helper.make_opsetid("com.microsoft", 1)]).SerializeToString()


class AgainstOnnxRuntime(unittest.TestCase):
    def same(self, op: str, *arrays: np.ndarray, outputs: int = 1, constants: tuple = (), near: float = 2e-5,
             domain: str = "com.microsoft", valid: object = None, **attributes: object) -> None:
        """valid: (output, expected) -> the part of the output that is defined."""
        inputs = {f"x{i}": a for i, a in enumerate(arrays)}
        names = tuple(f"x{i}" for i in constants)
        model = model_of(op, inputs, outputs, names, domain, attributes)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        feeds = {k: v for k, v in inputs.items() if v is not None and k not in names}
        want = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)
        for level in (0, 2):
            with self.subTest(op, level=level, shapes=[getattr(a, "shape", None) for a in arrays], **attributes):
                got = backend.prepare(model, level=level).run(feeds)
                self.assertEqual(len(got), len(want))
                for a, b in zip(got, want):
                    self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
                    if valid:
                        a, b = valid(a), valid(b)
                    np.testing.assert_allclose(a, b, rtol=1e-4, atol=near)

    def test_functions(self) -> None:
        x, bias = 3 * numbers(3, 5, 16), numbers(16)
        self.same("Gelu", x)
        self.same("QuickGelu", x)
        self.same("QuickGelu", x, alpha=0.5)
        self.same("BiasGelu", x, bias)
        self.same("FastGelu", x, near=1e-4)
        self.same("FastGelu", x, bias, near=1e-4)

    def test_products(self) -> None:
        x, w, b = numbers(2, 4, 9, 9), numbers(6, 4, 3, 3), numbers(6)
        for name, params in (("Relu", []), ("Sigmoid", []), ("Tanh", []), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 1.5]),
                             ("HardSigmoid", [0.3, 0.4])):
            more = {"activation_params": params} if params else {}
            self.same("FusedConv", x, w, b, activation=name, pads=[1, 1, 1, 1], **more)
        z = numbers(2, 6, 4, 4)
        self.same("FusedConv", x, w, b, z, activation="Relu", strides=[2, 2])
        self.same("FusedConv", x, w, None, z, strides=[2, 2], kernel_shape=[3, 3], constants=(1,))
        a, m = numbers(3, 7), numbers(5, 7)
        for name, given in (("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Tanh", {}), ("Elu", {"activation_alpha": 1.5}),
                            ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}), ("Softsign", {})):
            self.same("FusedGemm", a, m, numbers(5), transB=1, alpha=0.5, beta=2.0, activation=name, **given)
        self.same("FusedMatMul", numbers(3, 4, 5), numbers(3, 4, 6), transA=1, alpha=0.25)
        self.same("FusedMatMul", numbers(4, 5), numbers(6, 5), transB=1, constants=(1,))
        self.same("FusedMatMul", numbers(4, 2, 3, 5), numbers(2, 3, 5, 6), transBatchA=1)
        self.same("FusedMatMul", numbers(5, 2, 3, 4), numbers(2, 3, 6, 5), transA=1, transBatchA=1, transB=1, alpha=2.0)
        self.same("TransposeMatMul", numbers(4, 5), numbers(6, 5), transB=1, alpha=3.0)

    def test_norms(self) -> None:
        x, skip, gamma, beta, bias = numbers(2, 5, 16), numbers(2, 5, 16), numbers(16), numbers(16), numbers(16)
        for more in ((), (beta,), (beta, bias), (None, bias)):
            self.same("SkipLayerNormalization", x, skip, gamma, *more, epsilon=1e-5)
        for more in ((), (bias,)):
            self.same("SkipSimplifiedLayerNormalization", x, skip, gamma, *more, epsilon=1e-5)
        self.same("SkipLayerNormalization", x, numbers(1, 5, 16), gamma, beta)
        self.same("SkipLayerNormalization", x, numbers(5, 16), gamma, beta, constants=(2, 3))
        self.same("LayerNormalization", x, gamma, beta, domain="", axis=-1, epsilon=1e-3)
        self.same("SimplifiedLayerNormalization", x, gamma, domain="", axis=-1, epsilon=1e-3, stash_type=1)
        ids, segments = RANDOM.integers(0, 20, (2, 5)).astype("i4"), RANDOM.integers(0, 2, (2, 5)).astype("i4")
        words, places, kinds = numbers(20, 16), numbers(8, 16), numbers(2, 16)
        mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "i4")
        self.same("EmbedLayerNormalization", ids, segments, words, places, kinds, gamma, beta, mask, outputs=2)
        self.same("EmbedLayerNormalization", ids, None, words, places, None, gamma, beta, outputs=2)
        self.same("EmbedLayerNormalization", ids, None, words, places, None, gamma, beta, None,
                  np.array([[3, 1, 0, 7, 2]], "i4"), outputs=3)

    def test_attention(self) -> None:
        batch, tokens, old = 2, 5, 3
        x, w, b = numbers(batch, tokens, 12), numbers(12, 3 * HIDDEN), numbers(3 * HIDDEN)
        past = numbers(2, batch, HEADS, old, SIZE)
        self.same("Attention", x, w, b, num_heads=HEADS)
        self.same("Attention", x, w, b, num_heads=HEADS, unidirectional=1, constants=(1, 2))
        self.same("Attention", x, w, b, np.array([3, 5], "i4"), num_heads=HEADS)
        self.same("Attention", x, w, b, np.array([4, 5, 1, 0], "i4"), num_heads=HEADS)
        keep = np.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]], "i4")
        self.same("Attention", x, w, b, keep, num_heads=HEADS, scale=0.5)
        self.same("Attention", x, w, b, RANDOM.integers(0, 2, (batch, tokens, tokens)).astype("i4"), num_heads=HEADS)
        self.same("Attention", x, w, b, keep, None, numbers(1, HEADS, tokens, tokens), num_heads=HEADS)
        self.same("Attention", x, w, b, None, past, num_heads=HEADS, outputs=2, unidirectional=1)
        self.same("Attention", x, numbers(12, 2 * HIDDEN + 12), numbers(2 * HIDDEN + 12), num_heads=HEADS,
                  qkv_hidden_sizes=[HIDDEN, HIDDEN, 12])

    def test_multi_head_attention(self) -> None:
        batch, tokens, keys, old = 2, 5, 7, 3
        q, k, v = numbers(batch, tokens, HIDDEN), numbers(batch, keys, HIDDEN), numbers(batch, keys, HIDDEN)
        bias = numbers(3 * HIDDEN)
        op = "MultiHeadAttention"
        self.same(op, q, k, v, num_heads=HEADS)
        self.same(op, q, k, v, bias, num_heads=HEADS, scale=0.3)
        self.same(op, q, k, numbers(batch, keys, 12), num_heads=HEADS)
        self.same(op, q, k, v, None, np.array([4, 7], "i4"), num_heads=HEADS)
        keep = np.ones((batch, keys), "i4")
        keep[0, 4:] = 0
        self.same(op, q, k, v, bias, keep, numbers(batch, HEADS, tokens, keys), num_heads=HEADS)
        self.same(op, q, k, v, None, None, numbers(1, 1, tokens, keys), num_heads=HEADS)
        self.same(op, q, numbers(batch, HEADS, keys, SIZE), numbers(batch, HEADS, keys, SIZE), num_heads=HEADS)
        self.packed(op, q, k, v)
        past = [numbers(batch, HEADS, old, SIZE) for _ in range(2)]
        here = [numbers(batch, tokens, HIDDEN) for _ in range(2)]
        self.same(op, q, *here, None, None, None, *past, num_heads=HEADS, outputs=3)
        self.same(op, q, *here, None, None, None, *past, num_heads=HEADS, outputs=3, unidirectional=1)
        self.same(op, q, *here, num_heads=HEADS, unidirectional=1)
        self.same(op, q, k, v, bias, keep, numbers(batch, HEADS, tokens, keys), num_heads=HEADS, outputs=4, near=2e-3)
        self.same(op, q, *here, None, None, None, *past, num_heads=HEADS, outputs=4, scale=0.3)

    def packed(self, op: str, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
        """K and V, or all three, in one tensor, which ONNX Runtime's CPU kernel does not take: as if apart."""
        def apart(x: np.ndarray) -> np.ndarray:
            return x.reshape(*x.shape[:2], HEADS, 1, SIZE)

        def run(*arrays: np.ndarray) -> np.ndarray:
            inputs = {f"x{i}": a for i, a in enumerate(arrays)}
            return backend.prepare(model_of(op, inputs, 1, (), "com.microsoft", {"num_heads": HEADS})).run(inputs)[0]

        np.testing.assert_allclose(run(q, np.concatenate([apart(k), apart(v)], 3)), run(q, k, v), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(run(np.concatenate([apart(k), apart(k), apart(v)], 3)), run(k, k, v), rtol=1e-5,
                                   atol=1e-6)

    def test_group_query_attention(self) -> None:
        batch, heads, kv, size = 2, 4, 2, 16
        op = "GroupQueryAttention"
        attributes = {"num_heads": heads, "kv_num_heads": kv}
        angles = RANDOM.uniform(0, 3, (32, size // 2)).astype("f")
        turn = (np.cos(angles), np.sin(angles))

        def call(tokens: int, lengths: list, total: int, room: int, packed: bool = False, rotary: bool = False,
                 bias: object = None, sink: object = None, **more: object) -> None:
            q, k, v = (numbers(batch, tokens, n * size) for n in (heads, kv, kv))
            if packed:
                q, k, v = np.concatenate([q, k, v], 2), None, None
            past = [numbers(batch, kv, room, size) for _ in range(2)]
            if not room:
                past = [np.zeros((batch, kv, 0, size), "f")] * 2
            self.same(op, q, k, v, *past, np.array(lengths, "i4"), np.array(total, "i4").reshape(1),
                      *(turn if rotary else (None, None)), None, bias, sink, outputs=4 if "qk_output" in more else 3, **attributes,
                      **({"do_rotary": 1} if rotary else {}), **more)

        call(5, [4, 4], 5, 0)
        call(5, [4, 4], 5, 0, packed=True, rotary=True)
        call(1, [8, 8], 9, 8)
        call(1, [8, 8], 9, 8, rotary=True, rotary_interleaved=1)
        call(1, [8, 8], 9, 8, local_window_size=4)
        call(6, [5, 5], 6, 0, local_window_size=3)
        call(5, [4, 4], 5, 0, softcap=5.0, scale=0.2)
        call(5, [4, 4], 5, 0, bias=numbers(1, 1, 5, 5))
        call(5, [4, 4], 5, 0, smooth_softmax=1)
        call(1, [8, 8], 9, 8, smooth_softmax=1, local_window_size=4)
        call(5, [4, 4], 5, 0, sink=numbers(heads))
        call(5, [4, 4], 5, 0, sink=numbers(heads), bias=numbers(1, 1, 5, 5), softcap=5.0)
        call(1, [8, 8], 9, 8, sink=4 * numbers(heads), rotary=True)
        for scores in (1, 2):
            call(5, [4, 4], 5, 0, qk_output=scores)
            call(1, [8, 8], 9, 8, rotary=True, qk_output=scores)
            call(6, [5, 5], 6, 0, local_window_size=3, softcap=5.0, qk_output=scores)
            call(5, [4, 4], 5, 0, sink=numbers(heads), bias=numbers(1, 1, 5, 5), qk_output=scores)
            call(1, [8, 8], 9, 8, smooth_softmax=1, local_window_size=4, qk_output=scores)

    def test_group_query_attention_of_other_caches(self) -> None:
        heads, kv, size = 4, 2, 16
        attributes = {"num_heads": heads, "kv_num_heads": kv}
        angles = RANDOM.uniform(0, 3, (32, size // 2)).astype("f")

        def call(tokens: int, length: int, room: int, real: object = None, bias: object = None, dtype: str = "f",
                 scales: int = 0, keeps: object = None, **more: object) -> None:
            """length: tokens there are at the end; real: of the new ones; keeps: those that the cache then has."""
            q, k, v = (numbers(1, tokens, n * size) for n in (heads, kv, kv))
            if dtype == "f":
                past, by = [numbers(1, kv, room, size) for _ in range(2)], (None, None)
            else:
                past = [codes(1, kv, room, size if dtype == "int8" else size // 2, dtype=dtype) for _ in range(2)]
                by = [RANDOM.uniform(0.02, 0.1, scales).astype("f") for _ in range(2)]
            new, last = tokens if real is None else real, length if keeps is None else keeps
            self.same("GroupQueryAttention", q, k, v, *past, np.array([length - 1], "i4"), np.array(length, "i4"),
                      np.cos(angles), np.sin(angles), None, bias, None, *by, None, None,
                      None if real is None else np.array([real], "i4"), outputs=3, do_rotary=1, near=1e-4,
                      valid=lambda a: a[:, :new] if a.ndim == 3 else a[:, :, :last], **attributes, **more)

        for dtype, bits in (("int8", 8), ("uint8", 4)):
            for scales, how in ((1, "PER_TENSOR"), (kv * size, "PER_CHANNEL")):
                form = {"kv_cache_bit_width": bits, "k_quant_type": how, "v_quant_type": how}
                call(1, 6, 8, dtype=dtype, scales=scales, **form)
                call(3, 7, 8, dtype=dtype, scales=scales, smooth_softmax=1, local_window_size=4, **form)
        for real in (0, 2, 4):
            call(4, 7, 11, real, softcap=4.0)
            call(4, 7, 11, real, bias=numbers(1, heads, 4, 7), local_window_size=3)
        window = {"sliding_window_cache": 1, "local_window_size": 3}
        for length, keeps in ((4, 4), (5, 5), (6, 3), (7, 4), (8, 5), (9, 3)):
            call(1, length, 5, keeps=keeps, **window)
            call(3, length, 5, keeps=keeps, bias=numbers(1, 1, 3, length), **window)
            call(3, length, 5, 2, keeps=keeps, **window)
        call(9, 12, 5, keeps=3, **window)

    def test_group_query_attention_of_f8(self) -> None:
        """ONNX Runtime has such caches on GPUs alone: against one of f32 that holds the same numbers."""
        size, room, scale, kind = 16, 5, 0.5, TensorProto.FLOAT8E4M3FN
        q, k, v, *past = numbers(1, 2, size), *(200 * numbers(1, 2, size) for _ in range(2)), *(
            numbers(1, 1, room, size) for _ in range(2))

        def rounded(*arrays: np.ndarray) -> list:
            nodes = [helper.make_node("Cast", [f"x{i}"], [f"c{i}"], to=kind) for i in range(len(arrays))]
            nodes += [helper.make_node("Cast", [f"c{i}"], [f"y{i}"], to=TensorProto.FLOAT) for i in range(len(arrays))]
            return self.run_nodes(nodes, {f"x{i}": a / scale for i, a in enumerate(arrays)}, "y", len(arrays))

        k8, v8, *past8 = (scale * a for a in rounded(k, v, *past))
        lengths = {"n": np.array([6], "i4"), "t": np.array(7, "i4")}
        names = ["q", "k", "v", "p", "w", "n", "t"]
        attributes = {"domain": "com.microsoft", "num_heads": 1, "kv_num_heads": 1}
        want = self.run_nodes([helper.make_node("GroupQueryAttention", names, ["y0", "y1", "y2"], **attributes)],
                              {"q": q, "k": k8, "v": v8, "p": past8[0], "w": past8[1], **lengths}, "y", 3)
        nodes = [helper.make_node("Cast", [x], [f"{x}8"], to=kind) for x in "pw"]
        nodes += [helper.make_node("GroupQueryAttention", ["q", "k", "v", "p8", "w8", "n", "t", *[""] * 5, "s", "s"],
                                   ["y0", "a", "b"], k_quant_type="PER_TENSOR", v_quant_type="PER_TENSOR",
                                   kv_cache_bit_width=8, **attributes)]
        nodes += [helper.make_node("Cast", [x], [y], to=TensorProto.FLOAT) for x, y in (("a", "y1"), ("b", "y2"))]
        got = self.run_nodes(nodes, {"q": q, "k": k, "v": v, "p": past[0] / scale, "w": past[1] / scale,
                                     "s": np.array([scale], "f"), **lengths}, "y", 3)
        for a, b, by in zip(got, want, (1, scale, scale)):
            np.testing.assert_allclose(by * a, b, rtol=1e-5, atol=1e-5)

    def run_nodes(self, nodes: list, inputs: dict, out: str, n: int) -> list:
        kinds = {x: helper.np_dtype_to_tensor_dtype(a.dtype) for x, a in inputs.items()}
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(x, kinds[x], a.shape) for x, a in inputs.items()],
                                  [helper.make_empty_tensor_value_info(f"{out}{i}") for i in range(n)])
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21),
                                                                       helper.make_opsetid("com.microsoft", 1)])
        return backend.prepare(model.SerializeToString()).run(inputs)

    def test_group_query_attention_with_norms(self) -> None:
        """ONNX Runtime's CPU has none: against queries and keys that are normalised before."""
        q, k, v, wq, wk = numbers(1, 3, 2 * SIZE), numbers(1, 3, SIZE), numbers(1, 3, SIZE), numbers(SIZE), numbers(SIZE)
        rest = {"x3": None, "x4": None, "x5": np.array([2], "i4"), "x6": np.array(3, "i4")}

        def run(x: np.ndarray, y: np.ndarray, *weights: np.ndarray, level: int) -> list:
            inputs = {"x0": x, "x1": y, "x2": v, **rest, **{f"x{i}": None for i in range(7, 14)}}
            inputs.update({f"x{14 + i}": w for i, w in enumerate(weights)})
            model = model_of("GroupQueryAttention", inputs, 3, (), "com.microsoft",
                             {"num_heads": 2, "kv_num_heads": 1, "qk_norm_epsilon": 0.25, "k_norm_epsilon": 0.5})
            return backend.prepare(model, level=level).run({i: a for i, a in inputs.items() if a is not None})

        def normal(x: np.ndarray, w: np.ndarray, epsilon: float) -> np.ndarray:
            heads = x.reshape(1, 3, -1, SIZE)
            return (heads / np.sqrt((heads**2).mean(-1, keepdims=True) + epsilon) * w).reshape(x.shape).astype("f")

        for level in (0, 2):
            for a, b in zip(run(q, k, wq, wk, level=level), run(normal(q, wq, 0.25), normal(k, wk, 0.5), level=level)):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

    def test_paged_attention(self) -> None:
        """ONNX Runtime has it on GPUs alone: against GroupQueryAttention of each text, which knows no pages."""
        heads, kv, size, page, pages = 4, 2, 8, 3, 9
        angles = RANDOM.uniform(0, 3, (32, size // 2)).astype("f")
        turn = (np.cos(angles), np.sin(angles))

        def run(op: str, inputs: tuple, **attributes: object) -> list:
            named = {f"x{i}": a for i, a in enumerate(inputs)}
            return backend.prepare(model_of(op, named, 3, (), "com.microsoft",
                                            {"num_heads": heads, "kv_num_heads": kv, **attributes})).run(
                                                {k: a for k, a in named.items() if a is not None})

        for new, past, packed, more in (([2, 1, 4], [4, 0, 2], False, {}), ([1, 1, 1], [5, 8, 0], True, {}),
                                        ([3, 0, 5], [3, 2, 4], False, {"do_rotary": 1, "local_window_size": 4}),
                                        ([1, 6, 1], [0, 1, 3], True, {"do_rotary": 1, "scale": 0.2, "softcap": 4.0})):
            tokens = sum(new)
            q, k, v = (numbers(tokens, n * size) for n in (heads, kv, kv))
            caches = [numbers(pages, page, kv, size) for _ in range(2)]
            table = RANDOM.permutation(pages).reshape(3, 3).astype("i4")
            starts = np.cumsum([0] + new).astype("i4")
            extra = turn if "do_rotary" in more else ()
            qkv = (np.concatenate([q, k, v], 1), None, None) if packed else (q, k, v)
            y, *after = run("PagedAttention", (*qkv, *caches, starts, np.array(past, "i4"), table, *extra), **more)
            for b, (n, old) in enumerate(zip(new, past)):
                if not n:
                    continue
                mine = slice(starts[b], starts[b + 1])
                lie = [c[table[b]].reshape(1, 3 * page, kv, size)[:, :old].transpose(0, 2, 1, 3) for c in caches]
                want, *present = run("GroupQueryAttention", (q[None, mine], k[None, mine], v[None, mine], *lie,
                                                             np.array([old + n - 1], "i4"), np.array([old + n], "i4"),
                                                             *extra), **more)
                np.testing.assert_allclose(y[mine], want[0], rtol=2e-5, atol=2e-6)
                for cache, all_of_it in zip(after, present):
                    got = cache[table[b]].reshape(1, 3 * page, kv, size)[:, :old + n].transpose(0, 2, 1, 3)
                    np.testing.assert_allclose(got, all_of_it[:, :, :old + n], rtol=1e-5, atol=1e-6)

    def test_experts(self) -> None:
        experts, hidden, inter = 5, 16, 24
        for act, k, normal in (("relu", 1, 0), ("gelu", 2, 1), ("silu", 3, 0), ("swiglu", 2, 1)):
            wide = 2 * inter if act == "swiglu" else inter
            more = {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0,
                    "swiglu_limit": 1.5} if act == "swiglu" else {}
            first, second = numbers(experts, wide, hidden), numbers(experts, hidden, inter)
            for constants in ((), (2, 4)):
                self.same("MoE", numbers(2, 7, hidden), numbers(14, experts), first, numbers(experts, wide), second,
                          numbers(experts, hidden), constants=constants, near=2e-3, activation_type=act, k=k,
                          normalize_routing_weights=normal, **more)

    def test_decoding(self) -> None:
        batch, room = 2, 10
        op, here = "DecoderMaskedMultiHeadAttention", [numbers(batch, 1, HIDDEN) for _ in range(3)]
        past, length = [numbers(batch, HEADS, room, SIZE) for _ in range(2)], np.array([4], "i4")
        keep = np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 1]], "i4")
        for mask, bias, added in ((None, None, None), (keep, None, numbers(3 * HIDDEN)),
                                  (keep, numbers(1, HEADS, 1, 5), None)):
            self.same(op, *here, mask, bias, *past, length, None, None, added, num_heads=HEADS, outputs=3,
                      past_present_share_buffer=1)
        apart = [numbers(batch, HEADS, 6, SIZE) for _ in range(2)]
        self.same(op, here[0], *apart, np.array([[1, 1, 0, 1, 1, 0], [0, 1, 1, 1, 1, 1]], "i4"), num_heads=HEADS)
        self.same(op, *here, keep, None, *past, length, None, None, numbers(3 * HIDDEN), num_heads=HEADS, outputs=4,
                  output_qk=1, past_present_share_buffer=1, near=2e-3)

    def test_coded_layers(self) -> None:
        for kind in (0, 1):
            self.same("MatMulBnb4", numbers(3, 48), codes(168), numbers(11), constants=(1, 2), K=48, N=7, block_size=32,
                      quant_type=kind, near=2e-4)
        scales = [np.array(s, "f") for s in (0.012, 0.015, 0.011, 0.014, 0.013)]
        zeros = [np.array(120, "uint8")] * 5
        ids, kinds = RANDOM.integers(0, 20, (2, 5)).astype("i4"), RANDOM.integers(0, 2, (2, 5)).astype("i4")
        mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "i4")
        self.same("QEmbedLayerNormalization", ids, kinds, codes(20, 16), codes(8, 16), codes(2, 16), codes(16), codes(16),
                  mask, *scales, *zeros, outputs=2, epsilon=1e-5, near=1e-4)
        w, r = codes(1, 6, 32), codes(1, 8, 32)
        self.same("DynamicQuantizeLSTM", numbers(5, 1, 6), w, r, 0.1 * numbers(1, 64), None, None, None, None,
                  np.array([0.005], "f"), np.array([128], "uint8"), np.array([0.004], "f"), np.array([120], "uint8"),
                  outputs=3, hidden_size=8, near=1e-4, constants=(1, 2, 8, 9, 10, 11))

    def test_models_without_its_import(self) -> None:
        """ONNX Runtime reads them, and its tools write them."""
        model = onnx.load_from_string(model_of("QuickGelu", {"x0": numbers(3)}, 1, (), "com.microsoft", {}))
        del model.opset_import[1]
        x = numbers(3)
        np.testing.assert_allclose(backend.prepare(model).run([x])[0], x / (1 + np.exp(-1.702 * x)), rtol=1e-5)
        model.graph.node[0].domain = "com.nobody"
        with self.assertRaises(hone.UnsupportedError):
            backend.prepare(model)

    def test_codes_with_channels_last(self) -> None:
        x, numbers_of = codes(2, 6, 7, 3), [np.array(0.05, "f"), np.array(120, "uint8"), np.array(0.04, "f"), np.array(99, "uint8")]
        self.same("QLinearGlobalAveragePool", x, *numbers_of, channels_last=1, constants=(1, 2, 3, 4))
        self.same("QLinearGlobalAveragePool", x, *numbers_of, channels_last=0, constants=(1, 2, 3, 4))
        for more in ({}, {"pads": [1, 1, 0, 1]}, {"strides": [2, 2], "ceil_mode": 1}, {"pads": [1, 1, 1, 1], "count_include_pad": 1}):
            self.same("QLinearAveragePool", x, *numbers_of, channels_last=1, constants=(1, 2, 3, 4), kernel_shape=[3, 2],
                      near=1, **more)  # halves fall either way

    def test_rotary_embedding(self) -> None:
        angles = RANDOM.uniform(0, 3, (20, SIZE // 2)).astype("f")
        tables = (np.cos(angles), np.sin(angles))
        for interleaved in (0, 1):
            self.same("RotaryEmbedding", numbers(2, 5, HIDDEN), np.array([3], "i8"), *tables, interleaved=interleaved)
            self.same("RotaryEmbedding", numbers(2, HEADS, 5, SIZE), RANDOM.integers(0, 20, (2, 5)), *tables,
                      interleaved=interleaved)

    def test_codes(self) -> None:
        a = numbers(2, 3, 70)
        for bits, block in ((4, 16), (4, 32), (8, 32), (2, 16)):
            blocks = -(-70 // block)
            b, scales = codes(9, blocks, block * bits // 8), 0.1 * numbers(9, blocks)
            zeros = codes(9, -(-blocks * bits // 8))
            if bits != 2:
                self.same("MatMulNBits", a, b, scales, K=70, N=9, bits=bits, block_size=block, near=1e-3,
                          constants=(1, 2))
            self.same("MatMulNBits", a, b, scales, zeros, K=70, N=9, bits=bits, block_size=block, near=1e-3,
                      constants=(1, 2, 3))
        self.same("MatMulNBits", a, codes(9, 5, 8), 0.1 * numbers(9, 5), None, None, numbers(9), K=70, N=9, bits=4,
                  block_size=16, constants=(1, 2, 5))
        apart = RANDOM.permutation(np.arange(70) // 16)
        for groups in (np.arange(70) // 16, apart, RANDOM.integers(0, 5, 70)): # g_idx: in order, blocks, no blocks
            for zeros in (None, numbers(9 * 5)):
                for constants in ((1, 2, 3, 4), (1, 2), ()):
                    self.same("MatMulNBits", a, codes(9, 5, 8), 0.1 * numbers(9 * 5), zeros, groups.astype("i4"),
                              numbers(9), K=70, N=9, bits=4, block_size=16, near=1e-3,
                              constants=tuple(i for i in constants if i != 3 or zeros is not None))
        index = RANDOM.integers(-12, 12, (2, 3))
        for bits in (4, 8):
            packed = 64 * bits // 8
            self.same("GatherBlockQuantized", codes(12, packed), index, numbers(12, 4), constants=(0, 2),
                      block_size=16, bits=bits, quantize_axis=1)
            self.same("GatherBlockQuantized", codes(12, packed), index, numbers(12, 4), codes(12, 4 * bits // 8),
                      constants=(0, 2, 3), block_size=16, bits=bits, quantize_axis=1)
        for kind in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.FLOAT4E2M1):
            for block in (0, 32):
                table = (3 * numbers(12, 70)).astype(helper.tensor_dtype_to_np_dtype(kind))
                self.same("GatherBlockQuantized", table, index, numbers(12, 3 if block else 1), constants=(0, 2),
                          block_size=block, quantize_axis=1)
        self.same("NhwcMaxPool", codes(2, 9, 8, 5), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        x = codes(2, 7, 7, 4)
        w = RANDOM.integers(-60, 60, (6, 4, 3, 3)).astype("int8") # without VNNI larger ones overflow in ONNX Runtime
        one = (np.float32(0.05), np.uint8(120))
        scale, zero = np.abs(numbers(6)) * 0.01 + 0.001, np.zeros(6, "int8")
        for last in (0, 1):
            self.same("QLinearConv", x if last else x.transpose(0, 3, 1, 2).copy(), *map(np.array, one), w, scale, zero,
                      np.array(0.2, "f"), np.array(128, "uint8"), RANDOM.integers(-99, 99, 6).astype("i4"),
                      constants=(1, 2, 3, 4, 5, 6, 7, 8), channels_last=last, pads=[1, 1, 1, 1])
        self.same("QuantizeLinear", 9 * numbers(3, 4), np.array(0.01, "f"), np.array(500, "uint16"), constants=(1, 2))
        self.same("DequantizeLinear", RANDOM.integers(-3000, 3000, (3, 4)).astype("i2"), np.array([0.1, 0.2, 0.5, 1], "f"),
                  np.array([5, -7, 9, 0], "i2"), axis=1, constants=(1, 2))

    def test_linear_attention(self) -> None:
        batch, tokens, size, width = 2, 5, 8, 20
        gate, rate = -np.abs(numbers(batch, tokens, 4)), np.abs(numbers(batch, tokens, 4))
        for rule in ("linear", "gated", "delta", "gated_delta"):
            given = [gate if "gated" in rule else None, rate if "delta" in rule else None]
            for q, k in ((8, 4), (4, 4), (2, 4), (2, 2)): # heads of queries and keys for four states
                self.same("LinearAttention", numbers(batch, tokens, q * size), 0.3 * numbers(batch, tokens, k * size),
                          numbers(batch, tokens, 4 * width), numbers(batch, 4, size, width), *given, outputs=2,
                          q_num_heads=q, kv_num_heads=4, update_rule=rule)

    def test_causal_convolution(self) -> None:
        w, b = numbers(6, 1, 4), numbers(6)
        self.same("CausalConvWithState", numbers(2, 6, 5), w, b, numbers(2, 6, 3), outputs=2, activation="silu")
        self.same("CausalConvWithState", numbers(2, 6, 5), w, None, numbers(2, 6, 9), outputs=2, dilation=3)
        self.same("CausalConvWithState", numbers(2, 5, 3, 2), w, b, numbers(2, 3, 3, 2), outputs=2, channels_last=1)

    def test_engrams(self) -> None:
        self.same("EngramGate", numbers(2, 5, 3, 16), numbers(2, 5, 3, 16), numbers(2, 5, 16), numbers(3, 16), numbers(3, 16),
                  numbers(3, 16), outputs=2)
        for kind in ("i8", "i4"):
            ids, segments = RANDOM.integers(-3, 6, (2, 9)).astype(kind), np.sort(RANDOM.integers(0, 3, (2, 9)), 1).astype("i4")
            factors, sizes = RANDOM.integers(1, 2**31, 3).astype(kind), np.array([11, 13, 17, 19], kind)
            for past, end, parts in ((None, None, None), (ids[:, :2], None, segments), (ids[:, :2], np.array(3, kind), None)):
                self.same("NGramHashMapping", ids, factors, sizes, past, sizes, end, parts, outputs=2, max_ngram_size=3,
                          n_head_per_ngram=2, pad_id=1, reset_on_eos=int(end is not None))

    def test_texts_one_behind_the_other(self) -> None:
        starts, captured = np.array([0, 2, 3, 7], "i4"), np.array([-1, 5, 3], "i4")
        for apart in (1, 3):
            x, w, b, state = numbers(7, 5), numbers(5, 1, 3), numbers(5), numbers(3, 5, 2 * apart)
            self.same("VarlenCausalConvWithState", x, w, starts, None, state, outputs=2, dilation=apart)
            self.same("VarlenCausalConvWithState", x, w, starts, b, state, captured, outputs=3, dilation=apart,
                      activation="silu", state_update_capacity=4)
        for kind in ("i4", "i8"):
            ids, past = RANDOM.integers(0, 4, 7).astype(kind), RANDOM.integers(0, 4, (3, 3)).astype(kind)
            segments, old = RANDOM.integers(0, 2, 7).astype("i4"), RANDOM.integers(0, 2, (3, 3)).astype("i4")
            head = (np.array([7, -3, 1 << 29, 11], kind), RANDOM.integers(1, 99, 6).astype(kind), starts)
            sizes = {"max_ngram_size": 4, "n_head_per_ngram": 2, "pad_id": 5}
            self.same("VarlenNGramHashMapping", ids, *head, outputs=2, **sizes)
            for reset in (0, 1):
                self.same("VarlenNGramHashMapping", ids, *head, past, RANDOM.integers(-9, 9, 6).astype(kind),
                          np.array(2, kind), segments, old, captured, outputs=4, reset_on_eos=reset,
                          state_update_capacity=4, **sizes)

    def test_gated_delta_net(self) -> None:
        tokens, size, width = 6, 8, 70
        q, k, v = numbers(tokens, 2, size), 0.3 * numbers(tokens, 2, size), numbers(tokens, 4, width)
        gate, rate, state, a, dt = numbers(tokens, 4), numbers(tokens, 4), numbers(2, 4, width, size), 0.3 * numbers(4), numbers(4)
        raw = {"gate_activation": "softplus", "beta_activation": "sigmoid", "qk_l2_norm": 1}
        for starts in (None, np.array([0, 2, tokens], "i4")):
            self.same("GatedDeltaNet", q, k, v, starts, gate, rate, state, a, dt, outputs=2, **raw)
        batch = [x.reshape(2, 3, *x.shape[1:]) for x in (q, k, v, gate, rate)]
        self.same("GatedDeltaNet", *batch[:3], None, *batch[3:], None, a, dt, outputs=2, **raw)
        packed = np.concatenate([x.reshape(tokens, -1) for x in (q, k, v)], 1)
        self.same("GatedDeltaNet", packed, None, None, None, -np.abs(gate), np.abs(rate), state, outputs=2)
        self.same("GatedDeltaNet", q, k, v, None, numbers(tokens, 4, size), np.abs(rate), state, a, numbers(4, size),
                  outputs=2, gate_activation="kda", gate_lower_bound=-3.0)
        for rule in ("linear", "gated", "delta"):
            self.same("GatedDeltaNet", q, k, v, None, -np.abs(gate) if rule == "gated" else None,
                      np.abs(rate) if rule == "delta" else None, state, outputs=2, update_rule=rule, scale=0.5)

    def test_files_for_one_processor(self) -> None:
        """As ONNX Runtime saves them at its level "all", here for the processor that the test runs on."""
        def conv(x: str, y: str, i: int, o: int, kernel: int, **more: object) -> onnx.NodeProto:
            weights[f"{y}_w"] = 0.2 * numbers(o, i, kernel, kernel)
            weights[f"{y}_b"] = numbers(o)
            return helper.make_node("Conv", [x, f"{y}_w", f"{y}_b"], [y], pads=[kernel // 2] * 4, **more)
        for opset in (9, 10, 13, 19):
            weights: dict = {}
            nodes = [conv("x", "a", 3, 24, 3, strides=[2, 2]), helper.make_node("Relu", ["a"], ["b"]),
                     conv("b", "c", 1, 24, 3, group=24), helper.make_node("LeakyRelu", ["c"], ["d"], alpha=0.1),
                     conv("d", "e", 24, 40, 1), conv("b", "f", 24, 40, 1), helper.make_node("Add", ["e", "f"], ["g"]),
                     helper.make_node("MaxPool", ["g"], ["h"], kernel_shape=[2, 2], strides=[2, 2]),
                     conv("h", "i", 40, 32, 3), helper.make_node("Concat", ["h", "i"], ["j"], axis=1),
                     helper.make_node("AveragePool", ["j"], ["k"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
                     helper.make_node("ReduceMean", ["k"], ["l"], axes=[0], keepdims=1) if opset < 18 else
                     helper.make_node("Sin", ["k"], ["l"]),
                     conv("l", "m", 72, 20, 1), helper.make_node("GlobalAveragePool", ["m"], ["y"])]
            graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
                                      [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 20, 1, 1])],
                                      initializer=[onnx.numpy_helper.from_array(w, n) for n, w in weights.items()])
            model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])
            options, feeds = onnxruntime.SessionOptions(), {"x": numbers(1, 3, 16, 16)}
            options.log_severity_level = 4
            with tempfile.TemporaryDirectory() as folder:
                options.optimized_model_filepath = os.path.join(folder, "all.onnx")
                session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                       providers=["CPUExecutionProvider"])
                saved = onnx.load(options.optimized_model_filepath)
            (want,) = session.run(None, feeds)
            for level in (0, 2):
                with self.subTest(opset=opset, level=level):
                    np.testing.assert_allclose(backend.prepare(saved, level=level).run(feeds)[0], want, rtol=1e-4, atol=1e-4)

    def test_images(self) -> None:
        x = numbers(2, 3, 7, 6)
        for mode, padding in (("bilinear", "zeros"), ("nearest", "border"), ("bicubic", "reflection")):
            self.same("GridSample", x, RANDOM.uniform(-1.2, 1.2, (2, 4, 5, 2)).astype("f"), mode=mode,
                      padding_mode=padding, align_corners=1)
        boxes = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [-0.3, 0.4, 0.5, 1.4]], "f")
        for mode in ("bilinear", "nearest"):
            self.same("CropAndResize", x, boxes, np.array([1, 0, 1], "i4"), np.array([4, 5], "i4"), mode=mode,
                      extrapolation_value=0.5, constants=(3,))
        self.same("Inverse", numbers(2, 3, 4, 4), near=1e-3)


if __name__ == "__main__":
    unittest.main()
