"""Networks of other families than the zoo's, with seeded random weights, spelled as exporters spell them: is the advice true there, too?

usage: families.py FOLDER [SEED]     (needs the pip packages onnx and numpy; about 250 MB)
then:  python3 bench/advice/truth.py build/hone --models FOLDER --only '*.onnx*'
       make bench-peers PARTS=others OTHERS=FOLDER"""

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 1)


class Network:
    """Builds one graph: c() is a constant, w() scaled random weights, op() a node; the rest are layers made of these."""

    def __init__(s, shape, opset=13):
        s.n = []
        s.i = []
        s.k = 0
        s.opset = opset
        s.inp = h.make_tensor_value_info("x", T.FLOAT, shape)

    def name(s, p):
        s.k += 1
        return f"{p}_{s.k}"

    def c(s, a, dt=np.float32):
        n = s.name("c")
        s.i.append(nh.from_array(np.asarray(a, dt), n))
        return n

    def op(s, t, *x, **a):
        y = s.name(t)
        s.n.append(h.make_node(t, list(x), [y], name=y, **a))
        return y

    def w(s, *sh):
        return s.c(rng.standard_normal(sh) * np.sqrt(2 / np.prod(sh[1:])))

    def conv(s, x, i, o, k=3, st=1, g=1, bias=True, bn=False, pad=None, dil=1):
        p = (dil * (k - 1)) // 2 if pad is None else pad
        args = [x, s.w(o, i // g, k, k)]
        if bias and not bn:
            args.append(s.c(rng.standard_normal(o) * 0.1))
        y = s.op("Conv", *args, kernel_shape=[k, k], strides=[st, st], pads=[p] * 4, group=g, dilations=[dil, dil])
        if bn:
            y = s.op(
                "BatchNormalization",
                y,
                s.c(1 + 0.1 * rng.standard_normal(o)),
                s.c(0.1 * rng.standard_normal(o)),
                s.c(0.1 * rng.standard_normal(o)),
                s.c(1 + 0.1 * rng.random(o)),
            )
        return y

    def silu(s, x):
        return s.op("Mul", x, s.op("Sigmoid", x))

    def hswish(s, x):
        return s.op("Mul", x, s.op("HardSigmoid", x, alpha=1 / 6.0, beta=0.5))

    def gelu(s, x):
        e = s.op("Erf", s.op("Div", x, s.c(2**0.5)))
        return s.op("Mul", s.op("Mul", x, s.op("Add", e, s.c(1.0))), s.c(0.5))

    def se(s, x, c, r, act, gate="Sigmoid"):
        y = s.op("GlobalAveragePool", x)
        y = act(s.conv(y, c, r, 1))
        y = s.conv(y, r, c, 1)
        y = s.op("Sigmoid", y) if gate == "Sigmoid" else s.op("HardSigmoid", y, alpha=1 / 6.0, beta=0.5)
        return s.op("Mul", x, y)

    def relu(s, x):
        return s.op("Relu", x)

    def ln(s, x, d, axis=-1):
        m = s.op("ReduceMean", x, axes=[axis], keepdims=1)
        z = s.op("Sub", x, m)
        v = s.op("ReduceMean", s.op("Pow", z, s.c(2.0)), axes=[axis], keepdims=1)
        y = s.op("Div", z, s.op("Sqrt", s.op("Add", v, s.c(1e-5))))
        return s.op("Add", s.op("Mul", y, s.c(1 + 0.1 * rng.standard_normal(d))), s.c(0.1 * rng.standard_normal(d)))

    def fc(s, x, i, o):
        return s.op("Add", s.op("MatMul", x, s.c(rng.standard_normal((i, o)) * np.sqrt(1 / i))), s.c(0.1 * rng.standard_normal(o)))

    def save(s, y, path):
        g = h.make_graph(s.n, "g", [s.inp], [h.make_tensor_value_info(y, T.FLOAT, None)], s.i)
        m = h.make_model(g, opset_imports=[h.make_opsetid("", s.opset)], ir_version=8)
        m = onnx.shape_inference.infer_shapes(m)
        m.graph.output[0].CopyFrom([v for v in m.graph.value_info if v.name == y][0]) if any(v.name == y for v in m.graph.value_info) else None
        onnx.save(m, path)


def effnet():
    b = Network([1, 3, 224, 224])
    x = b.silu(b.conv("x", 3, 32, 3, 2, bn=True))
    c = 32
    for t, o, n, st, k in [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5)]:
        for j in range(n):
            e = c * t
            y = x
            if t > 1:
                y = b.silu(b.conv(y, c, e, 1, bn=True))
            y = b.silu(b.conv(y, e, e, k, st if j == 0 else 1, g=e, bn=True))
            y = b.se(y, e, max(4, c // 4), b.silu)
            y = b.conv(y, e, o, 1, bn=True)
            if j:
                y = b.op("Add", x, y)
            x, c = y, o
    x = b.silu(b.conv(x, c, 1280, 1, bn=True))
    x = b.op("Flatten", b.op("GlobalAveragePool", x))
    return b, b.op("Gemm", x, b.w(1000, 1280), b.c(np.zeros(1000)), transB=1)


def mbv3():
    b = Network([1, 3, 224, 224])
    x = b.hswish(b.conv("x", 3, 16, 3, 2, bn=True))
    c = 16
    for k, e, o, se, hs, st in [
        (3, 16, 16, 0, 0, 1),
        (3, 64, 24, 0, 0, 2),
        (3, 72, 24, 0, 0, 1),
        (5, 72, 40, 1, 0, 2),
        (5, 120, 40, 1, 0, 1),
        (3, 240, 80, 0, 1, 2),
        (3, 200, 80, 0, 1, 1),
        (3, 480, 112, 1, 1, 1),
        (3, 672, 112, 1, 1, 1),
        (5, 672, 160, 1, 1, 2),
        (5, 960, 160, 1, 1, 1),
    ]:
        a = b.hswish if hs else b.relu
        y = a(b.conv(x, c, e, 1, bn=True))
        y = b.conv(y, e, e, k, st, g=e, bn=True)
        if se:
            y = b.se(y, e, e // 4, b.relu, "h")
        y = a(y)
        y = b.conv(y, e, o, 1, bn=True)
        if st == 1 and c == o:
            y = b.op("Add", x, y)
        x, c = y, o
    x = b.hswish(b.conv(x, c, 960, 1, bn=True))
    x = b.op("Flatten", b.op("GlobalAveragePool", x))
    return b, b.op("Gemm", x, b.w(1000, 960), b.c(np.zeros(1000)), transB=1)


def convnext():
    b = Network([1, 3, 160, 160])
    x = b.conv("x", 3, 64, 4, 4, pad=0)
    c = 64
    for s, (d, n) in enumerate([(64, 2), (128, 2), (256, 4), (512, 2)]):
        if s:
            x = b.conv(x, c, d, 2, 2, pad=0)
            c = d
        for _ in range(n):
            y = b.conv(x, c, c, 7, g=c)
            y = b.op("Transpose", y, perm=[0, 2, 3, 1])
            y = b.ln(y, c)
            y = b.fc(y, c, 4 * c)
            y = b.gelu(y)
            y = b.fc(y, 4 * c, c)
            y = b.op("Mul", y, b.c(0.1 * rng.standard_normal(c)))
            y = b.op("Transpose", y, perm=[0, 3, 1, 2])
            x = b.op("Add", x, y)
    return b, b.op("Flatten", b.op("GlobalAveragePool", x))


def vit():
    L, d, H = 197, 192, 3
    b = Network([1, L, d])
    x = "x"
    for _ in range(6):
        y = b.ln(x, d)
        q, k, v = [b.op("Transpose", b.op("Reshape", b.fc(y, d, d), b.c([1, L, H, d // H], np.int64)), perm=[0, 2, 1, 3]) for _ in range(3)]
        a = b.op("Softmax", b.op("Mul", b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2])), b.c((d // H) ** -0.5)), axis=-1)
        o = b.op("Reshape", b.op("Transpose", b.op("MatMul", a, v), perm=[0, 2, 1, 3]), b.c([1, L, d], np.int64))
        x = b.op("Add", x, b.fc(o, d, d))
        y = b.ln(x, d)
        x = b.op("Add", x, b.fc(b.gelu(b.fc(y, d, 4 * d)), 4 * d, d))
    return b, b.ln(x, d)


def unet():
    b = Network([1, 3, 128, 128])
    cs = [32, 64, 128, 256]
    x = "x"
    c = 3
    skips = []
    for i, o in enumerate(cs):
        if i:
            x = b.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        for _ in range(2):
            x = b.relu(b.conv(x, c, o, 3, bn=True))
            c = o
        skips.append(x)
    for o, s in zip(cs[-2::-1], skips[-2::-1]):
        x = b.op("ConvTranspose", x, b.w(c, o, 2, 2), b.c(np.zeros(o)), kernel_shape=[2, 2], strides=[2, 2])
        x = b.op("Concat", s, x, axis=1)
        c = 2 * o
        for _ in range(2):
            x = b.relu(b.conv(x, c, o, 3, bn=True))
            c = o
    return b, b.op("Sigmoid", b.conv(x, c, 1, 1))


def densenet():
    b = Network([1, 3, 128, 128])
    x = b.relu(b.conv("x", 3, 64, 7, 2, bn=True))
    x = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    c = 64

    def bn(x, c):
        return b.op(
            "BatchNormalization",
            x,
            b.c(1 + 0.1 * rng.standard_normal(c)),
            b.c(0.1 * rng.standard_normal(c)),
            b.c(0.1 * rng.standard_normal(c)),
            b.c(1 + 0.1 * rng.random(c)),
        )

    for n in (4, 6, 8):
        for _ in range(n):
            y = b.conv(b.relu(bn(x, c)), c, 128, 1, bias=False)
            y = b.conv(b.relu(bn(y, 128)), 128, 32, 3, bias=False)
            x = b.op("Concat", x, y, axis=1)
            c += 32
        x = b.conv(b.relu(bn(x, c)), c, c // 2, 1, bias=False)
        c //= 2
        x = b.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    return b, b.op("Flatten", b.op("GlobalAveragePool", x))


def resnext():
    b = Network([1, 3, 160, 160])
    x = b.relu(b.conv("x", 3, 64, 7, 2, bn=True))
    c = 64
    for o, st in [(128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)]:
        y = b.relu(b.conv(x, c, o, 1, bn=True))
        y = b.relu(b.conv(y, o, o, 3, st, g=16, bn=True))
        y = b.conv(y, o, o, 1, bn=True)
        s = x if st == 1 and c == o else b.conv(x, c, o, 1, st, bn=True)
        x = b.relu(b.op("Add", y, s))
        c = o
    return b, b.op("Flatten", b.op("GlobalAveragePool", x))


def vgg():
    b = Network([1, 3, 112, 112])
    x = "x"
    c = 3
    for o, n in [(64, 2), (128, 2), (256, 3), (512, 3)]:
        for _ in range(n):
            x = b.relu(b.conv(x, c, o, 3))
            c = o
        x = b.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = b.op("Flatten", x)
    x = b.relu(b.op("Gemm", x, b.w(1024, 512 * 49), b.c(np.zeros(1024)), transB=1))
    return b, b.op("Gemm", x, b.w(100, 1024), b.c(np.zeros(100)), transB=1)


def yolo5():
    b = Network([1, 3, 256, 256])
    x = b.silu(b.conv("x", 3, 32, 6, 2, pad=2))
    c = 32
    for o, n in [(64, 1), (128, 2), (256, 3)]:
        x = b.silu(b.conv(x, c, o, 3, 2))
        c = o
        a = b.silu(b.conv(x, c, c // 2, 1))
        z = b.silu(b.conv(x, c, c // 2, 1))
        for _ in range(n):
            a = b.op("Add", a, b.silu(b.conv(b.silu(b.conv(a, c // 2, c // 2, 1)), c // 2, c // 2, 3)))
        x = b.silu(b.conv(b.op("Concat", a, z, axis=1), c, c, 1))
    return b, b.conv(x, c, 255, 1)


def yolo8():
    """YOLOv8n with its head: splits, an upsampled pyramid, boxes as expectations over 16 bins, one output."""
    size = 320
    b = Network([1, 3, size, size])

    def cbs(x, i, o, k=1, st=1):
        return b.silu(b.conv(x, i, o, k, st, bn=True))

    def c2f(x, i, o, n, add):
        half = o // 2
        k = b.name("split")
        first, last = k + "_0", k + "_1"
        b.n.append(h.make_node("Split", [cbs(x, i, o), b.c([half, half], np.int64)], [first, last], name=k, axis=1))
        parts = [first, last]
        for _ in range(n):
            y = cbs(cbs(parts[-1], half, half, 3), half, half, 3)
            parts.append(b.op("Add", parts[-1], y) if add else y)
        return cbs(b.op("Concat", *parts, axis=1), (2 + n) * half, o)

    def up(x):
        return b.op("Resize", x, "", b.c([1, 1, 2, 2]), mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")

    x = cbs(cbs("x", 3, 16, 3, 2), 16, 32, 3, 2)
    x = cbs(c2f(x, 32, 32, 1, True), 32, 64, 3, 2)
    p3 = c2f(x, 64, 64, 2, True)
    p4 = c2f(cbs(p3, 64, 128, 3, 2), 128, 128, 2, True)
    x = c2f(cbs(p4, 128, 256, 3, 2), 256, 256, 1, True)
    pools = [cbs(x, 256, 128)]
    for _ in range(3):
        pools.append(b.op("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
    p5 = cbs(b.op("Concat", *pools, axis=1), 512, 256)
    n4 = c2f(b.op("Concat", up(p5), p4, axis=1), 384, 128, 1, False)
    n3 = c2f(b.op("Concat", up(n4), p3, axis=1), 192, 64, 1, False)
    n4 = c2f(b.op("Concat", cbs(n3, 64, 64, 3, 2), n4, axis=1), 192, 128, 1, False)
    n5 = c2f(b.op("Concat", cbs(n4, 128, 128, 3, 2), p5, axis=1), 384, 256, 1, False)
    rows = []
    for x, c in [(n3, 64), (n4, 128), (n5, 256)]:
        box = b.conv(cbs(cbs(x, c, 64, 3), 64, 64, 3), 64, 64, 1)
        score = b.conv(cbs(cbs(x, c, 80, 3), 80, 80, 3), 80, 80, 1)
        rows.append(b.op("Reshape", b.op("Concat", box, score, axis=1), b.c([1, 144, -1], np.int64)))
    x = b.op("Concat", *rows, axis=2)
    b.n.append(h.make_node("Split", [x, b.c([64, 80], np.int64)], ["boxes", "scores"], name="heads", axis=1))
    cells = sum((size // s) ** 2 for s in (8, 16, 32))
    bins = b.op("Transpose", b.op("Reshape", "boxes", b.c([1, 4, 16, cells], np.int64)), perm=[0, 2, 1, 3])
    bins = b.op("Softmax", bins, axis=1)
    y = b.op("Conv", bins, b.c(np.arange(16).reshape(1, 16, 1, 1)), kernel_shape=[1, 1])
    y = b.op("Reshape", y, b.c([1, 4, cells], np.int64))
    return b, b.op("Concat", y, b.op("Sigmoid", "scores"), axis=1)


def espcn():
    b = Network([1, 1, 180, 180])
    x = b.op("Tanh", b.conv("x", 1, 64, 5))
    x = b.op("Tanh", b.conv(x, 64, 32, 3))
    x = b.conv(x, 32, 9, 3)
    return b, b.op("DepthToSpace", x, blocksize=3)


def mlp():
    b = Network([64, 512])
    x = "x"
    for i, o in [(512, 1024), (1024, 1024), (1024, 512)]:
        x = b.relu(b.fc(x, i, o))
    return b, b.op("Softmax", b.fc(x, 512, 100), axis=-1)


def gpt():
    L, d, H = 64, 256, 4
    b = Network([1, L, d])
    x = "x"
    mask = np.triu(np.full((L, L), -1e9, np.float32), 1)
    for _ in range(4):
        y = b.ln(x, d)
        qkv = b.fc(y, d, 3 * d)
        b.k += 1
        outs = [b.name("s") for _ in range(3)]
        b.n.append(h.make_node("Split", [qkv], outs, name=b.name("Split"), axis=-1))
        q, k, v = [b.op("Transpose", b.op("Reshape", t, b.c([1, L, H, d // H], np.int64)), perm=[0, 2, 1, 3]) for t in outs]
        a = b.op("Div", b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2])), b.c((d // H) ** 0.5))
        a = b.op("Softmax", b.op("Add", a, b.c(mask)), axis=-1)
        o = b.op("Reshape", b.op("Transpose", b.op("MatMul", a, v), perm=[0, 2, 1, 3]), b.c([1, L, d], np.int64))
        x = b.op("Add", x, b.fc(o, d, d))
        y = b.fc(b.ln(x, d), d, 4 * d)
        y = b.op(
            "Mul",
            b.op("Mul", y, b.c(0.5)),
            b.op("Add", b.op("Tanh", b.op("Mul", b.op("Add", y, b.op("Mul", b.op("Pow", y, b.c(3.0)), b.c(0.044715))), b.c(0.7978845608))), b.c(1.0)),
        )
        x = b.op("Add", x, b.fc(y, 4 * d, d))
    return b, b.fc(b.ln(x, d), d, 1000)


def lstm():
    b = Network([48, 1, 64])
    H = 128
    x = "x"
    i = 64
    for _ in range(2):
        y = b.name("Y")
        b.n.append(
            h.make_node(
                "LSTM",
                [x, b.c(rng.standard_normal((1, 4 * H, i)) * 0.1), b.c(rng.standard_normal((1, 4 * H, H)) * 0.1), b.c(np.zeros((1, 8 * H)))],
                [y],
                name=y,
                hidden_size=H,
            )
        )
        x = b.op("Squeeze", y, b.c([1], np.int64))
        i = H
    return b, b.fc(x, H, 64)


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for f in [effnet, mbv3, convnext, vit, unet, densenet, resnext, vgg, yolo5, yolo8, espcn, mlp, gpt, lstm]:
        b, y = f()
        b.save(y, f"{sys.argv[1]}/{f.__name__}.onnx")
