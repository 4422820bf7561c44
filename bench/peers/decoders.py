"""Decoders with caches of keys and values, written node by node: what exporters of language models write, in any size.

    python3 bench/peers/decoders.py FOLDER [NAME...]

A NAME is SIZE_FORM_TYPE, such as tiny_plain_f32. Sizes: tiny (2 layers of width 128), small (4 of 512), middle (8 of
1024, 113 million weights). Forms: plain (ONNX's small operators, as PyTorch's exporter writes Llama), gqa
(com.microsoft.GroupQueryAttention and normalisations that add, as onnxruntime-genai's builder writes it), attention
(opset 23's Attention, RotaryEmbedding and RMSNormalization; f32 and f16). Types: f32, f16, bf16 (weights, activations
and caches), int4 and int8 (MatMulNBits in blocks of 32, f32 activations), int4fast and int8fast (accuracy_level 4).
Without names: the ones in ALL below. Needs `pip install onnx numpy ml_dtypes`. Random weights; FOLDER/NAME.shapes says
shapes. Run them with decoding.py."""
import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

MS = "com.microsoft"
SIZES = { # layers, width, heads, heads of keys, inner width, words
    "tiny": (2, 128, 4, 2, 352, 1000),
    "small": (4, 512, 8, 2, 1408, 8000),
    "middle": (8, 1024, 16, 4, 3072, 8000),
}
ALL = ("tiny_plain_f32", "tiny_gqa_f32", "tiny_attention_f32", "small_plain_f32", "small_gqa_f32",
       "small_attention_f32", "small_gqa_int4", "middle_plain_f32", "middle_plain_f16", "middle_plain_bf16",
       "middle_gqa_f32", "middle_gqa_f16", "middle_gqa_int4", "middle_gqa_int4fast", "middle_gqa_int8fast")
MOST = 4096 # positions
FLOATS = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}


class Decoder:
    def __init__(self, size, form, kind):
        self.layers, self.width, self.heads, self.groups, self.inner, self.words = SIZES[size]
        self.depth = self.width // self.heads
        self.form, self.kind = form, kind
        self.type = FLOATS.get(kind, TensorProto.FLOAT)
        self.random = np.random.RandomState(7)
        self.nodes, self.constants, self.known = [], [], {}
        self.inputs, self.outputs = [], []

    def constant(self, value, typed=False):
        """A constant; typed: of the model's type of numbers."""
        value = np.asarray(value)
        key = (value.tobytes(), value.dtype.str, value.shape, typed) if value.size < 16 else None
        if key in self.known:
            return self.known[key]
        name = "c%d" % len(self.constants)
        if typed and self.type == TensorProto.FLOAT16:
            value = value.astype(np.float16)
        elif typed and self.type == TensorProto.BFLOAT16:
            import ml_dtypes
            value = value.astype(ml_dtypes.bfloat16)
        if value.dtype.name == "bfloat16":
            self.constants.append(helper.make_tensor(name, TensorProto.BFLOAT16, value.shape, value.tobytes(), raw=True))
        else:
            self.constants.append(numpy_helper.from_array(value, name))
        if key:
            self.known[key] = name
        return name

    def whole(self, *values):
        return self.constant(np.array(values, np.int64))

    def node(self, kind, inputs, n_out=1, domain="", **attributes):
        outputs = ["v%d_%d" % (len(self.nodes), i) for i in range(n_out)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, name="n%d" % len(self.nodes), **attributes))
        return outputs[0] if n_out == 1 else outputs

    def weight(self, k, n):
        return self.random.standard_normal((k, n)).astype(np.float32) / np.sqrt(np.float32(k))

    def product(self, x, k, n):
        if not self.kind.startswith("int"):
            return self.node("MatMul", [x, self.constant(self.weight(k, n), True)])
        bits, block = int(self.kind[3]), 32
        codes = self.random.randint(0, 256, (n, k // block, block * bits // 8)).astype(np.uint8)
        scales = (self.random.rand(n * k // block) + 0.5).astype(np.float32) / (np.sqrt(k) * 2 ** (bits - 2))
        return self.node("MatMulNBits", [x, self.constant(codes), self.constant(scales.astype(np.float32))], domain=MS, K=k,
                         N=n, bits=bits, block_size=block, accuracy_level=4 if self.kind.endswith("fast") else 0)

    def normal(self, x, skip=None):
        """The normalised sum, and the sum."""
        gain = self.constant(self.random.rand(self.width).astype(np.float32) + 0.5, True)
        if self.form == "gqa":
            if skip is None:
                return self.node("SimplifiedLayerNormalization", [x, gain], axis=-1, epsilon=1e-5), x
            name = "s%d" % len(self.nodes)
            y = "y%d" % len(self.nodes)
            self.nodes.append(helper.make_node("SkipSimplifiedLayerNormalization", [x, skip, gain], [y, "", "", name],
                                               domain=MS, epsilon=1e-5))
            return y, name
        total = x if skip is None else self.node("Add", [x, skip])
        if self.form == "attention":
            return self.node("RMSNormalization", [total, gain], axis=-1, epsilon=1e-5), total
        wide = self.type != TensorProto.FLOAT
        t = self.node("Cast", [total], to=TensorProto.FLOAT) if wide else total
        mean = self.node("ReduceMean", [self.node("Pow", [t, self.constant(np.float32(2))]), self.whole(-1)], keepdims=1)
        root = self.node("Sqrt", [self.node("Add", [mean, self.constant(np.float32(1e-5))])])
        y = self.node("Mul", [t, self.node("Reciprocal", [root])])
        if wide:
            y = self.node("Cast", [y], to=self.type)
        return self.node("Mul", [gain, y]), total

    def split(self, x, heads):
        """[1, n, heads * depth] to [1, heads, n, depth]."""
        return self.node("Transpose", [self.node("Reshape", [x, self.whole(0, -1, heads, self.depth)])], perm=[0, 2, 1, 3])

    def turned(self, x):
        """x with rotary positions, spelt out."""
        half, end = self.whole(self.depth // 2), self.whole(2 ** 62)
        low = self.node("Slice", [x, self.whole(0), half, self.whole(3)])
        high = self.node("Slice", [x, half, end, self.whole(3)])
        other = self.node("Concat", [self.node("Neg", [high]), low], axis=-1)
        return self.node("Add", [self.node("Mul", [x, self.cos]), self.node("Mul", [other, self.sin])])

    def repeated(self, x):
        """Each head of keys for its heads of queries."""
        if self.heads == self.groups:
            return x
        times = self.heads // self.groups
        wide = self.node("Unsqueeze", [x, self.whole(2)])
        shape = self.node("Concat", [self.whole(1, self.groups, times), self.total, self.whole(self.depth)], axis=0)
        wide = self.node("Expand", [wide, shape])
        return self.node("Reshape", [wide, self.node("Concat", [self.whole(1, self.heads), self.total, self.whole(self.depth)],
                                                     axis=0)])

    def attend(self, layer, q, k, v):
        past = ["past.%d.%s" % (layer, n) for n in "kv"]
        present = ["present.%d.%s" % (layer, n) for n in "kv"]
        for a, b in zip(past, present):
            self.inputs.append(helper.make_tensor_value_info(a, self.type, [1, self.groups, "past", self.depth]))
            self.outputs.append(helper.make_tensor_value_info(b, self.type, [1, self.groups, "total", self.depth]))
        if self.form == "gqa":
            y = "a%d" % layer
            self.nodes.append(helper.make_node(
                "GroupQueryAttention", [q, k, v, *past, self.lengths, self.longest, self.cos, self.sin], [y, *present],
                domain=MS, num_heads=self.heads, kv_num_heads=self.groups, do_rotary=1))
            return y
        q, k, v = [self.split(x, h) for x, h in ((q, self.heads), (k, self.groups), (v, self.groups))]
        if self.form == "attention":
            q, k = [self.node("RotaryEmbedding", [x, self.cos, self.sin, self.positions]) for x in (q, k)]
            y = "a%d" % layer
            self.nodes.append(helper.make_node("Attention", [q, k, v, "", *past], [y, *present], is_causal=1,
                                               scale=float(1 / np.sqrt(self.depth))))
        else:
            q, k = self.turned(q), self.turned(k)
            for new, a, b in ((k, past[0], present[0]), (v, past[1], present[1])):
                self.nodes.append(helper.make_node("Concat", [a, new], [b], axis=2))
            k, v = [self.repeated(x) for x in present]
            scores = self.node("MatMul", [q, self.node("Transpose", [k], perm=[0, 1, 3, 2])])
            scores = self.node("Mul", [scores, self.constant(np.float32(1 / np.sqrt(self.depth)), True)])
            scores = self.node("Add", [scores, self.mask])
            if self.type != TensorProto.FLOAT:
                p = self.node("Softmax", [self.node("Cast", [scores], to=TensorProto.FLOAT)], axis=-1)
                p = self.node("Cast", [p], to=self.type)
            else:
                p = self.node("Softmax", [scores], axis=-1)
            y = self.node("MatMul", [p, v])
        return self.node("Reshape", [self.node("Transpose", [y], perm=[0, 2, 1, 3]), self.whole(0, -1, self.width)])

    def prepare(self):
        """What all layers share: lengths, turns, mask."""
        angle = np.arange(MOST)[:, None] / 10000 ** (np.arange(0, self.depth // 2)[None] / (self.depth // 2))
        if self.form == "gqa":
            count = self.node("ReduceSum", ["attention_mask", self.whole(1)], keepdims=0)
            self.lengths = self.node("Cast", [self.node("Sub", [count, self.whole(1)])], to=TensorProto.INT32)
            length = self.node("Gather", [self.node("Shape", ["attention_mask"]), self.constant(np.int64(1))], axis=0)
            self.longest = self.node("Cast", [length], to=TensorProto.INT32)
            self.cos, self.sin = [self.constant(f(angle).astype(np.float32), True) for f in (np.cos, np.sin)]
            return
        before = self.node("Gather", [self.node("Shape", ["past.0.k"]), self.whole(2)], axis=0)
        tokens = self.node("Gather", [self.node("Shape", ["input_ids"]), self.whole(1)], axis=0)
        self.total = self.node("Add", [before, tokens])
        flat = self.constant(np.array([], np.int64))
        numbers = [self.node("Reshape", [x, flat]) for x in (before, self.total)]
        positions = self.node("Range", [*numbers, self.constant(np.int64(1))])
        if self.form == "attention":
            self.positions = self.node("Unsqueeze", [positions, self.whole(0)])
            self.cos, self.sin = [self.constant(f(angle).astype(np.float32), True) for f in (np.cos, np.sin)]
            return
        angle = np.concatenate([angle, angle], 1)
        self.cos, self.sin = [self.node("Gather", [self.constant(f(angle).astype(np.float32), True), positions], axis=0)
                              for f in (np.cos, np.sin)]
        keys = self.node("Range", [self.constant(np.int64(0)), numbers[1], self.constant(np.int64(1))])
        seen = self.node("LessOrEqual", [self.node("Unsqueeze", [keys, self.whole(0)]),
                                         self.node("Unsqueeze", [positions, self.whole(1)])])
        allowed = self.node("Cast", [self.node("Unsqueeze", ["attention_mask", self.whole(1, 2)])], to=TensorProto.BOOL)
        both = self.node("And", [seen, allowed])
        self.mask = self.node("Where", [both, self.constant(np.float32(0), True),
                                        self.constant(np.float32(-6e4), True)])

    def build(self):
        self.inputs.append(helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"]))
        if self.form != "attention":
            self.inputs.append(helper.make_tensor_value_info("attention_mask", TensorProto.INT64, [1, "total"]))
        self.outputs.append(helper.make_tensor_value_info("logits", self.type, [1, "tokens", self.words]))
        self.prepare()
        words = self.random.standard_normal((self.words, self.width)).astype(np.float32)
        x, skip = self.node("Gather", [self.constant(words, True), "input_ids"]), None
        heads, groups = self.heads * self.depth, self.groups * self.depth
        for layer in range(self.layers):
            y, x = self.normal(x, skip)
            q, k, v = [self.product(y, self.width, n) for n in (heads, groups, groups)]
            skip = self.product(self.attend(layer, q, k, v), heads, self.width)
            y, x = self.normal(x, skip)
            gate, up = self.product(y, self.width, self.inner), self.product(y, self.width, self.inner)
            swish = self.node("Mul", [gate, self.node("Sigmoid", [gate])])
            skip = self.product(self.node("Mul", [swish, up]), self.inner, self.width)
        y, _ = self.normal(x, skip)
        last = self.product(y, self.width, self.words)
        self.nodes.append(helper.make_node("Identity", [last], ["logits"]))

    def save(self, folder, name):
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        opset = 23 if self.form == "attention" else 21
        model = helper.make_model(graph, ir_version=10,
                                  opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)])
        save(model, os.path.join(folder, name + ".onnx"))
        with open(os.path.join(folder, name + ".shapes"), "w") as f:
            for use, tokens, past in (("decode", 1, 64), ("prefill", 128, 0)):
                words = ["input_ids=1x%d" % tokens]
                if self.form != "attention":
                    words.append("attention_mask=1x%d" % (tokens + past))
                words += ["past.%d.%s=1x%dx%dx%d" % (i, n, self.groups, past, self.depth)
                          for i in range(self.layers) for n in "kv"]
                f.write(" ".join([use, *words]) + "\n")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for name in sys.argv[2:] or ALL:
        decoder = Decoder(*name.split("_"))
        decoder.build()
        decoder.save(sys.argv[1], name)


if __name__ == "__main__":
    main()
