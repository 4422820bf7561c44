"""Small networks, for what a single operator does not show: layers between others, and forms that several nodes spell."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

MICROSOFT, CLASSICAL = "com.microsoft", "ai.onnx.ml"


class Net:
    """A graph in the making: each call adds a node and gives its output's name."""

    def __init__(self, **inputs):
        """inputs: shapes (f32), or (a shape, a type)."""
        self.r, self.nodes, self.constants, self.n = np.random.RandomState(1), [], [], 0
        self.ports = []
        for name, v in inputs.items():
            shape, kind = v if isinstance(v[0], (list, tuple)) else (v, T.FLOAT)
            self.ports.append(helper.make_tensor_value_info(name, kind, shape))

    def name(self):
        self.n += 1
        return "v%d" % self.n

    def const(self, array):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), self.name()))
        return self.constants[-1].name

    def weights(self, *shape, kind=np.float32):
        return self.const((self.r.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(kind))

    def op(self, op, *inputs, outputs=1, domain="", **attributes):
        names = [self.name() for _ in range(outputs)]
        inputs = [self.const(i) if isinstance(i, np.ndarray) else i or "" for i in inputs]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, *outputs, opset=20):
        """outputs: names (f32), or (a name, a type)."""
        ends = [o if isinstance(o, tuple) else (o, T.FLOAT) for o in outputs]
        graph = helper.make_graph(self.nodes, "net", self.ports, [helper.make_tensor_value_info(*e, None) for e in ends], self.constants)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1), helper.make_opsetid(CLASSICAL, 3)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def conv(self, x, cin, cout, kernel=1, stride=1, groups=1, act="Relu"):
        w = self.weights(cout, cin // groups, kernel, kernel)
        y = self.op("Conv", x, w, self.weights(cout), kernel_shape=[kernel] * 2, strides=[stride] * 2, group=groups,
                    pads=[kernel // 2] * 4)
        return self.op(act, y) if act else y

    def dense(self, x, k, n, act="Relu"):
        y = self.op("Add", self.op("MatMul", x, self.weights(k, n)), self.weights(n))
        return self.op(act, y) if act else y


def regnet(group, size=224):
    net, stem = Net(x=[1, 3, size, size]), max(32, 2 * group)
    x, cin = net.conv("x", 3, stem, 3, 2), stem
    for cout, depth in ((stem, 1), (2 * stem, 1), (4 * stem, 2), (8 * stem, 1)):
        for i in range(depth):
            stride = 1 if i else 2
            y = net.conv(net.conv(x, cin, cout), cout, cout, 3, stride, cout // group)
            y = net.conv(y, cout, cout, act=None)
            side = x if i else net.conv(x, cin, cout, 1, stride, act=None)
            x, cin = net.op("Relu", net.op("Add", y, side)), cout
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    return net.model(net.op("Gemm", x, net.weights(cin, 100)))


def grouped(channels, group, size, stride=1):
    """Between two 1x1 of 32 channels, so that no change of layout is counted."""
    net = Net(x=[1, 32, size, size])
    y = net.conv(net.conv("x", 32, channels), channels, channels, 3, stride, channels // group)
    return net.model(net.conv(y, channels, 32))


def narrow(channels, size, count=4):
    net, x = Net(x=[1, channels, size, size]), "x"
    for _ in range(count):
        x = net.conv(x, channels, channels)
    return net.model(net.op("GlobalAveragePool", x))


def coded_lstm(hidden, steps, batch=1):
    net = Net(x=[steps, batch, hidden])
    codes = lambda rows: net.r.randint(-127, 128, (1, rows, 4 * hidden)).astype(np.int8)
    scale, zero = np.full(1, 1 / 1000, np.float32), np.zeros(1, np.int8)
    y = net.op("DynamicQuantizeLSTM", "x", codes(hidden), codes(hidden), net.weights(1, 8 * hidden), None, None, None, None,
               scale, zero, scale, zero, domain=MICROSOFT, hidden_size=hidden)
    return net.model(y)


def doubles(act):
    net, x = Net(x=([64, 128], T.DOUBLE)), "x"
    for k, n in ((128, 256), (256, 256), (256, 64)):
        x = net.op(act, net.op("Add", net.op("MatMul", x, net.weights(k, n, kind=np.float64)), net.weights(n, kind=np.float64)))
    return net.model((x, T.DOUBLE))


def categories(rows=1000, kinds=20, columns=4):
    """Numbers of categories beside numbers, a linear model over all."""
    net = Net(kind=([rows, columns], T.INT64), number=[rows, 8])
    parts = []
    for c in range(columns):
        of = net.op("Gather", "kind", np.array([c]), axis=1)
        hot = net.op("OneHotEncoder", of, domain=CLASSICAL, cats_int64s=list(range(5 * c, 5 * c + kinds)), zeros=1)
        parts.append(net.op("Reshape", hot, np.array([-1, kinds])))
    parts.append(net.op("Scaler", "number", domain=CLASSICAL, offset=[0.5] * 8, scale=[2.0] * 8))
    x = net.op("Concat", *parts, axis=1)
    label, scores = net.op("LinearClassifier", x, outputs=2, domain=CLASSICAL, classlabels_ints=[0, 1, 2], post_transform="SOFTMAX",
                           coefficients=net.r.standard_normal(3 * (columns * kinds + 8)).tolist(), intercepts=[0.1, 0.2, 0.3])
    return net.model((label, T.INT64), scores)


def dlrm(batch=128, tables=8, wide=16):
    """Embeddings and dense features, whose products with each other go through a second network."""
    net = Net(dense=[batch, 13], ids=([batch, tables], T.INT64))
    x = net.dense(net.dense(net.dense("dense", 13, 64), 64, 32), 32, wide)
    rows = [net.op("Unsqueeze", x, np.array([1]))]
    for t in range(tables):
        of = net.op("Gather", "ids", np.array([t]), axis=1)
        rows.append(net.op("Gather", net.weights(1000, wide), of, axis=0))
    all_of = net.op("Concat", *rows, axis=1)
    z = net.op("MatMul", all_of, net.op("Transpose", all_of, perm=[0, 2, 1]))
    n = tables + 1
    below = np.array([i * n + j for i in range(n) for j in range(i)])
    z = net.op("Gather", net.op("Reshape", z, np.array([0, n * n])), below, axis=1)
    x = net.op("Concat", x, z, axis=1)
    return net.model(net.dense(net.dense(net.dense(x, wide + len(below), 64), 64, 32), 32, 1, "Sigmoid"))


def pointnet(points=1024, batch=2):
    net = Net(x=[batch, 3, points])
    x, cin = "x", 3
    for cout in (64, 64, 64, 128, 1024):
        y = net.op("Conv", x, net.weights(cout, cin, 1), net.weights(cout), kernel_shape=[1])
        x, cin = net.op("Relu", y), cout
    x = net.op("ReduceMax", x, np.array([2]), keepdims=0)
    return net.model(net.dense(net.dense(net.dense(x, 1024, 512), 512, 256), 256, 40, None))


def flax_norm(rows, wide, count=3):
    """LayerNormalization as Flax spells it, products between."""
    net, x = Net(x=[1, rows, wide]), "x"
    for _ in range(count):
        mean = net.op("ReduceMean", x, np.array([2]), keepdims=0)
        squares = net.op("ReduceMean", net.op("Mul", x, x), np.array([2]), keepdims=0)
        spread = net.op("Max", np.float32([0]), net.op("Sub", squares, net.op("Mul", mean, mean)))
        again = np.array([1, rows, 1])
        centred = net.op("Sub", x, net.op("Reshape", mean, again))
        part = net.op("Reciprocal", net.op("Sqrt", net.op("Add", net.op("Reshape", spread, again), np.float32([1e-6]))))
        y = net.op("Mul", centred, net.op("Mul", part, net.op("Abs", net.weights(wide))))
        x = net.dense(net.op("Add", y, net.weights(wide)), wide, wide)
    return net.model(x)


def small_models():
    """(label, model)"""
    for group in (8, 16, 24):
        yield "RegNet, groups of %d" % group, regnet(group)
    for channels, size in ((16, 112), (24, 112), (32, 112), (48, 56), (64, 56)):
        yield "Conv, 1x1 of %d channels, %d x %d" % (channels, size, size), narrow(channels, size)
    for group in (16, 24, 32):
        for channels, size in ((2, 112), (4, 56), (8, 28), (16, 14), (32, 7)):
            for stride in (1, 2):
                yield ("Conv, groups of %d, %d x %d, stride %d" % (group, size, size, stride),
                       grouped(channels * group, group, size, stride))
    yield "DynamicQuantizeLSTM, 128 units", coded_lstm(128, 64)
    yield "DynamicQuantizeLSTM, 512 units", coded_lstm(512, 64)
    for batch in (2, 4, 8):
        yield "DynamicQuantizeLSTM, 128 units, batch %d" % batch, coded_lstm(128, 64, batch)
    for act in ("Tanh", "Sigmoid", "Relu"):
        yield "Products of f64 with " + act, doubles(act)
    yield "OneHotEncoder and linear", categories()
    yield "DLRM", dlrm()
    yield "PointNet", pointnet()
    yield "Norms of Flax", flax_norm(64, 256)
