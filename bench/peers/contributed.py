"""Small models of ONNX Runtime's own operators (com.microsoft), as exporters of language models write them.

    python3 bench/peers/contributed.py FOLDER

Needs `pip install onnx numpy`. Random weights. One file each; what tells lengths is a constant, so that random inputs
fit. Compare with `make bench-peers OTHERS=FOLDER PEERS="--parts others"`."""
import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

R = np.random.RandomState(7)
MS = "com.microsoft"


def f32(*shape, scale=1.0):
    return (R.standard_normal(shape) * scale).astype(np.float32)


class Model:
    """Inputs by shape (f32), constants by value, nodes, outputs."""

    def __init__(self):
        self.nodes, self.inputs, self.outputs, self.constants = [], [], [], []

    def given(self, name, *shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, value, name=None):
        name = name or "c%d" % len(self.constants)
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind, inputs, outputs, domain=MS, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def save(self, folder, name, outputs):
        made = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs]
        graph = helper.make_graph(self.nodes, name, self.inputs, made, self.constants)
        model = helper.make_model(graph, ir_version=10,
                                  opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)])
        save(model, os.path.join(folder, name + ".onnx"))


HEADS, GROUPS, DEPTH, MOST = 8, 2, 64, 512


def group_query(folder, name, tokens, past, packed=False, rotary=True, batch=1, **attributes):
    m = Model()
    if packed:
        q, k, v = m.given("qkv", batch, tokens, (HEADS + 2 * GROUPS) * DEPTH), "", ""
    else:
        q, k, v = [m.given(n, batch, tokens, h * DEPTH) for n, h in (("q", HEADS), ("k", GROUPS), ("v", GROUPS))]
    cache = [m.given("past_" + n, batch, GROUPS, past, DEPTH) for n in "kv"]
    inputs = [q, k, v, *cache, m.constant(np.full((batch,), past + tokens - 1, np.int32)),
              m.constant(np.array(past + tokens, np.int32))]
    if rotary:
        angle = np.arange(MOST)[:, None] / 10000 ** (np.arange(0, DEPTH // 2)[None] / (DEPTH // 2))
        inputs += [m.constant(np.cos(angle).astype(np.float32)), m.constant(np.sin(angle).astype(np.float32))]
        attributes["do_rotary"] = 1
    if "head_sink" in attributes:
        del attributes["head_sink"]
        inputs += [""] * (11 - len(inputs)) + [m.constant(f32(HEADS))]
    m.node("GroupQueryAttention", inputs, ["y", "present_k", "present_v"], num_heads=HEADS, kv_num_heads=GROUPS,
           **attributes)
    m.save(folder, name, ["y", "present_k", "present_v"])


def n_bits(m, x, k, n, bits=4, block=32, zero=True, order=False):
    """x times a matrix of codes."""
    blocks = (k + block - 1) // block
    per = block * bits // 8
    inputs = [x, m.constant(R.randint(0, 256, (n, blocks, per)).astype(np.uint8)),
              m.constant((R.rand(n * blocks) * 0.02 + 0.01).astype(np.float32))]
    if zero:
        inputs.append(m.constant(R.randint(0, 256, (n * ((blocks * bits + 7) // 8),)).astype(np.uint8)))
    return m.node("MatMulNBits", inputs, ["nb%d" % len(m.nodes)], K=k, N=n, bits=bits, block_size=block,
                  accuracy_level=0)


def matmul_n_bits(folder, name, rows, **options):
    m = Model()
    y = n_bits(m, m.given("x", 1, rows, 512), 512, 1536, **options)
    m.save(folder, name, [y])


def layer(folder, name, tokens, past):
    """A layer as onnxruntime-genai's builder writes it: int4 products, grouped attention, skips that normalise."""
    m = Model()
    width, inner = HEADS * DEPTH, 1536
    x = m.given("x", 1, tokens, width)
    cache = [m.given("past_" + n, 1, GROUPS, past, DEPTH) for n in "kv"]
    normal = m.node("SimplifiedLayerNormalization", [x, m.constant(f32(width))], ["n0"], domain="", axis=-1,
                    epsilon=1e-5)
    q, k, v = [n_bits(m, normal, width, h * DEPTH) for h in (HEADS, GROUPS, GROUPS)]
    angle = np.arange(MOST)[:, None] / 10000 ** (np.arange(0, DEPTH // 2)[None] / (DEPTH // 2))
    m.node("GroupQueryAttention",
           [q, k, v, *cache, m.constant(np.array([past + tokens - 1], np.int32)),
            m.constant(np.array(past + tokens, np.int32)), m.constant(np.cos(angle).astype(np.float32)),
            m.constant(np.sin(angle).astype(np.float32))],
           ["a", "present_k", "present_v"], num_heads=HEADS, kv_num_heads=GROUPS, do_rotary=1)
    o = n_bits(m, "a", width, width)
    m.node("SkipSimplifiedLayerNormalization", [x, o, m.constant(f32(width))], ["n1", "", "", "s1"], epsilon=1e-5)
    gate, up = n_bits(m, "n1", width, inner), n_bits(m, "n1", width, inner)
    m.node("Sigmoid", [gate], ["g0"], domain="")
    m.node("Mul", [gate, "g0"], ["g1"], domain="")
    m.node("Mul", ["g1", up], ["g2"], domain="")
    down = n_bits(m, "g2", inner, width)
    m.node("SkipSimplifiedLayerNormalization", ["s1", down, m.constant(f32(width))], ["n2", "", "", "s2"], epsilon=1e-5)
    m.save(folder, name, ["n2", "s2", "present_k", "present_v"])


def rotary(folder, name, **attributes):
    m = Model()
    x = m.given("x", 2, HEADS, 64, DEPTH) if attributes.pop("heads", False) else m.given("x", 2, 64, HEADS * DEPTH)
    cos, sin = f32(MOST, DEPTH // 2), f32(MOST, DEPTH // 2)
    y = m.node("RotaryEmbedding", [x, m.constant(np.tile(np.arange(64), (2, 1)).astype(np.int64)), m.constant(cos),
                                   m.constant(sin)], ["y"], **attributes)
    m.save(folder, name, [y])


def heads(folder, name, tokens, keys, past=0, bias=False, mask=False, cross=False):
    m = Model()
    width = HEADS * DEPTH
    inputs = [m.given("q", 1, tokens, width)]
    if cross:
        inputs += [m.given("k", 1, HEADS, keys, DEPTH), m.given("v", 1, HEADS, keys, DEPTH)]
    else:
        inputs += [m.given("k", 1, keys, width), m.given("v", 1, keys, width)]
    inputs.append(m.constant(f32(3 * width)) if bias else "")
    inputs.append(m.constant(np.ones((1, keys + past), np.int32)) if mask else "")
    inputs.append("")
    outputs = ["y"]
    if past:
        inputs += [m.given("past_" + n, 1, HEADS, past, DEPTH) for n in "kv"]
        outputs += ["present_k", "present_v"]
    m.node("MultiHeadAttention", inputs, outputs, num_heads=HEADS)
    m.save(folder, name, outputs)


def attention(folder, name, past=0, unidirectional=0):
    m = Model()
    width = HEADS * DEPTH
    inputs = [m.given("x", 1, 64, width), m.constant(f32(width, 3 * width, scale=0.05)), m.constant(f32(3 * width)), ""]
    outputs = ["y"]
    if past:
        inputs.append(m.given("past", 2, 1, HEADS, past, DEPTH))
        outputs.append("present")
    m.node("Attention", inputs, outputs, num_heads=HEADS, unidirectional=unidirectional)
    m.save(folder, name, outputs)


def single(folder, name, kind, inputs, outputs=("y",), **attributes):
    m = Model()
    named = [m.given("x%d" % i, *v) if isinstance(v, tuple) else v if isinstance(v, str) else m.constant(v)
             for i, v in enumerate(inputs)]
    m.node(kind, named, list(outputs), **attributes)
    m.save(folder, name, [o for o in outputs if o])


def mixture(folder, name, kind="MoE", **attributes):
    m = Model()
    experts, width, inner, rows = 4, 256, 512, 32
    wide = inner * (2 if attributes.get("activation_type") == "swiglu" else 1)
    inputs = [m.given("x", rows, width), m.given("router", rows, experts)]
    inputs += [m.constant(f32(experts, wide, width, scale=0.05)), m.constant(f32(experts, wide)),
               m.constant(f32(experts, width, inner, scale=0.05)), m.constant(f32(experts, width))]
    if attributes.pop("third", False):
        inputs += [m.constant(f32(experts, inner, width, scale=0.05)), m.constant(f32(experts, inner))]
    m.node(kind, inputs, ["y"], k=2, **attributes)
    m.save(folder, name, ["y"])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for past, tokens in ((0, 64), (300, 1)):
        at = "_%d_%d" % (past, tokens)
        group_query(folder, "gqa" + at, tokens, past)
        group_query(folder, "gqa_plain" + at, tokens, past, rotary=False)
        group_query(folder, "gqa_packed" + at, tokens, past, packed=True)
        group_query(folder, "gqa_window" + at, tokens, past, local_window_size=48)
        group_query(folder, "gqa_softcap" + at, tokens, past, softcap=20.0)
        group_query(folder, "gqa_smooth" + at, tokens, past, smooth_softmax=1)
        group_query(folder, "gqa_sink" + at, tokens, past, head_sink=True)
        group_query(folder, "gqa_interleaved" + at, tokens, past, rotary_interleaved=1)
        group_query(folder, "gqa_scale" + at, tokens, past, scale=0.3)
        group_query(folder, "gqa_batch" + at, tokens, past, batch=3)
        layer(folder, "layer" + at, tokens, past)
    group_query(folder, "gqa_append", 16, 100)
    for rows in (1, 64):
        matmul_n_bits(folder, "nbits4_%d" % rows, rows)
        matmul_n_bits(folder, "nbits4_plain_%d" % rows, rows, zero=False)
        matmul_n_bits(folder, "nbits4_128_%d" % rows, rows, block=128)
        matmul_n_bits(folder, "nbits8_%d" % rows, rows, bits=8)
        matmul_n_bits(folder, "nbits2_%d" % rows, rows, bits=2)
    rotary(folder, "rotary")
    rotary(folder, "rotary_heads", heads=True)
    rotary(folder, "rotary_interleaved", interleaved=1)
    rotary(folder, "rotary_part", heads=True, num_heads=HEADS, rotary_embedding_dim=DEPTH)
    heads(folder, "mha", 64, 64)
    heads(folder, "mha_bias", 64, 64, bias=True)
    heads(folder, "mha_mask", 64, 64, mask=True)
    heads(folder, "mha_past", 1, 1, past=300)
    heads(folder, "mha_cross", 1, 300, cross=True)
    attention(folder, "attention")
    attention(folder, "attention_causal", unidirectional=1)
    attention(folder, "attention_past", past=100, unidirectional=1)
    w = 512
    single(folder, "skip_norm", "SkipLayerNormalization", [(1, 64, w), (1, 64, w), f32(w), f32(w), f32(w)],
           ("y", "", "", "s"), epsilon=1e-5)
    single(folder, "skip_simple", "SkipSimplifiedLayerNormalization", [(1, 64, w), (1, 64, w), f32(w)],
           ("y", "", "", "s"), epsilon=1e-5)
    single(folder, "simple", "SimplifiedLayerNormalization", [(1, 64, w), f32(w)], domain="", axis=-1, epsilon=1e-5)
    single(folder, "bias_gelu", "BiasGelu", [(1, 64, w), f32(w)])
    single(folder, "fast_gelu", "FastGelu", [(1, 64, w), f32(w)])
    single(folder, "quick_gelu", "QuickGelu", [(1, 64, w)], alpha=1.702)
    single(folder, "gelu", "Gelu", [(1, 64, w)])
    single(folder, "fused_matmul", "FusedMatMul", [(2, 64, w), (2, 64, w)], transB=1, alpha=0.125)
    single(folder, "bias_split_gelu", "BiasSplitGelu", [(1, 64, w), f32(w)])
    single(folder, "relative", "RelativePositionBias",
           [f32(32, HEADS), np.array(64, np.int64), np.array(64, np.int64)], max_distance=128, is_bidirectional=1)
    single(folder, "gated_relative", "GatedRelativePositionBias",
           [(1, 64, w), f32(w), f32(1, HEADS, 64, 64), f32(DEPTH, 8), f32(8), f32(1, HEADS, 1, 1)], num_heads=HEADS)
    single(folder, "decoder_masked", "DecoderMaskedMultiHeadAttention",
           [(1, 1, w), (1, 1, w), (1, 1, w), np.ones((1, 301), np.int32), "", (1, HEADS, 300, DEPTH),
            (1, HEADS, 300, DEPTH), np.array([300], np.int32)], ("y", "pk", "pv"), num_heads=HEADS)
    single(folder, "group_norm", "GroupNorm", [(1, 16, 16, 64), f32(64), f32(64)], groups=32, activation=1, epsilon=1e-5)
    single(folder, "pad_conv", "FusedConv", [(1, 16, 16, 16), f32(16, 16, 3, 3), f32(16)], activation="Relu",
           pads=[1, 1, 1, 1])
    single(folder, "rfft", "Rfft", [(2, 64)], normalized=0, onesided=1, signal_ndim=1)
    single(folder, "complex_mul", "ComplexMul", [(2, 33, 2), (2, 33, 2)])
    single(folder, "expand_dims", "ExpandDims", [(2, 33), np.array([1], np.int32)])
    single(folder, "cdist", "CDist", [(20, 33), (30, 33)], metric="euclidean")
    single(folder, "trilu", "Trilu", [(20, 33)], upper=1)
    single(folder, "unfold", "UnfoldTensor", [(1, 8, 33)], dim=-1, size=5, step=3)
    single(folder, "maxpool_mask", "MaxpoolWithMask", [(1, 4, 16, 16), np.ones((1, 4, 16, 16), np.int32)],
           kernel_shape=[2, 2], strides=[2, 2])
    mixture(folder, "moe", activation_type="relu", normalize_routing_weights=1)
    mixture(folder, "moe_silu", activation_type="silu", third=True, normalize_routing_weights=1)
    mixture(folder, "moe_swiglu", activation_type="swiglu", swiglu_fusion=1, normalize_routing_weights=1)


if __name__ == "__main__":
    main()
