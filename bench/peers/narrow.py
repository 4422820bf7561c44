"""Networks in narrow numbers as others' tools write them: files of ONNX Runtime's quantisers, converters to f16, NNCF.

    python3 bench/peers/narrow.py FOLDER MODEL.onnx... [--ways NAME,...]

MODEL are float networks (bench/peers/exported.py). Each way gives FOLDER/MODEL-WAY.onnx; what a tool cannot do is left
out with a line that says so, what is there is kept. Needs onnx and onnxruntime; onnxconverter-common for fp16, nncf for
nncf. Ranges come from two random inputs: good for speed and for comparing engines, not for accuracy."""
import argparse
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.INT64: np.int64,
         TensorProto.INT32: np.int32, TensorProto.BOOL: np.bool_}


def feeds(model, seed):
    """As bench/peers/engines.py: normal floats, small integers, masks of ones."""
    r, out = np.random.RandomState(seed), {}
    known = {i.name for i in model.graph.initializer}
    for v in model.graph.input:
        if v.name in known:
            continue
        t = v.type.tensor_type
        shape = [d.dim_value or 1 for d in t.shape.dim]
        if t.elem_type in (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL):
            x = np.ones(shape) if "mask" in v.name else np.zeros(shape) if "type" in v.name else r.randint(0, 100, shape)
        else:
            x = r.standard_normal(shape)
        out[v.name] = x.astype(TYPES[t.elem_type])
    return out


class Samples:
    def __init__(self, model, count=2):
        self.left = [feeds(model, 10 + i) for i in range(count)]

    def get_next(self):
        return self.left.pop() if self.left else None


def prepared(source, folder):
    """Shapes and folded batch normalisations, as ONNX Runtime's quantisers ask for it."""
    from onnxruntime.quantization.shape_inference import quant_pre_process
    path = os.path.join(folder, "prepared.onnx")
    try:
        quant_pre_process(source, path, skip_symbolic_shape=True)
        return path
    except Exception:
        return source


def static(source, path, folder, form="QDQ", act="QUInt8", weight="QInt8", channel=False, reduce=False, ops=None,
           extra=None):
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
    ready = prepared(source, folder)
    quantize_static(ready, path, Samples(onnx.load(ready)), quant_format=getattr(QuantFormat, form), per_channel=channel,
                    reduce_range=reduce, activation_type=getattr(QuantType, act), weight_type=getattr(QuantType, weight),
                    op_types_to_quantize=ops, extra_options=extra or {}, calibrate_method=CalibrationMethod.MinMax)


def dynamic(source, path, folder, weight="QInt8", channel=False, reduce=False):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(source, path, weight_type=getattr(QuantType, weight), per_channel=channel, reduce_range=reduce)


def nbits(source, path, folder, bits=4, form="QOperator", symmetric=True, level=None, block=32):
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
    model = onnx.load(source)
    if form == "QDQ" and model.opset_import[0].version < 21:
        from onnx import version_converter
        model = version_converter.convert_version(model, 21)
    config = DefaultWeightOnlyQuantConfig(block_size=block, is_symmetric=symmetric, accuracy_level=level,
                                          quant_format=getattr(QuantFormat, form), bits=bits)
    q = MatMulNBitsQuantizer(model, algo_config=config)
    q.process()
    onnx.save(q.model.model if hasattr(q.model, "model") else q.model, path)
    written = onnx.load(path, load_external_data=False).graph
    if not any(n.op_type in ("MatMulNBits", "GatherBlockQuantized", "DequantizeLinear") for n in written.node):
        raise ValueError("no product of constant weights by MatMul")


def half(source, path, folder, keep=False, tool="common"):
    if tool == "common":
        from onnxconverter_common import float16
    else:
        from onnxruntime.transformers import float16
    model = onnx.shape_inference.infer_shapes(onnx.load(source))
    onnx.save(float16.convert_float_to_float16(model, keep_io_types=keep), path)


def bf16(source, path, folder):
    """Every float of the file bf16, Casts at the ends: what `torch.onnx.export(model.bfloat16())` comes to."""
    import ml_dtypes
    model = onnx.load(source)
    narrow = TensorProto.BFLOAT16

    def tensor(t):
        if t.data_type == TensorProto.FLOAT:
            x = numpy_helper.to_array(t).astype(ml_dtypes.bfloat16)
            name = t.name
            t.CopyFrom(helper.make_tensor(name, narrow, x.shape, x.tobytes(), raw=True))

    def graph(g):
        for t in g.initializer:
            tensor(t)
        for n in g.node:
            for a in n.attribute:
                if a.type == onnx.AttributeProto.TENSOR:
                    tensor(a.t)
                if a.type == onnx.AttributeProto.GRAPH:
                    graph(a.g)
                if n.op_type == "Cast" and a.name == "to" and a.i == TensorProto.FLOAT:
                    a.i = narrow
        for v in list(g.value_info) + list(g.input) + list(g.output):
            if v.type.tensor_type.elem_type == TensorProto.FLOAT:
                v.type.tensor_type.elem_type = narrow

    graph(model.graph)
    g = model.graph
    before, behind = [], []
    for v in g.input:
        if v.type.tensor_type.elem_type == narrow:
            v.type.tensor_type.elem_type = TensorProto.FLOAT
            before.append(helper.make_node("Cast", [v.name], [v.name + "_bf16"], to=narrow))
            for n in g.node:
                n.input[:] = [x + "_bf16" if x == v.name else x for x in n.input]
    for v in g.output:
        if v.type.tensor_type.elem_type == narrow:
            v.type.tensor_type.elem_type = TensorProto.FLOAT
            inner = v.name + "_bf16"
            for n in g.node:
                n.output[:] = [inner if x == v.name else x for x in n.output]
                n.input[:] = [inner if x == v.name else x for x in n.input]
            behind.append(helper.make_node("Cast", [inner], [v.name], to=TensorProto.FLOAT))
    nodes = before + list(g.node) + behind
    del g.node[:]
    g.node.extend(nodes)
    onnx.save(model, path)


def fp8(source, path, folder, kind="FLOAT8E4M3FN"):
    """Weights of products and convolutions as f8 behind a DequantizeLinear of one scale a tensor."""
    import ml_dtypes
    from onnx import version_converter
    model = onnx.load(source)
    if model.opset_import[0].version < 19:
        model = version_converter.convert_version(model, 19)
    g = model.graph
    weights = {n.input[1] for n in g.node if n.op_type in ("Conv", "MatMul", "Gemm")}
    last = 448.0 if kind == "FLOAT8E4M3FN" else 57344.0
    to = ml_dtypes.float8_e4m3fn if kind == "FLOAT8E4M3FN" else ml_dtypes.float8_e5m2
    added = []
    for t in list(g.initializer):
        if t.name not in weights or t.data_type != TensorProto.FLOAT or len(t.dims) < 2:
            continue
        w = numpy_helper.to_array(t)
        scale = np.float32(np.abs(w).max() / last or 1)
        codes = (w / scale).astype(to)
        g.initializer.remove(t)
        g.initializer.extend([helper.make_tensor(t.name + "_f8", getattr(TensorProto, kind), w.shape, codes.tobytes(), raw=True),
                              numpy_helper.from_array(np.array(scale), t.name + "_scale")])
        added.append(helper.make_node("DequantizeLinear", [t.name + "_f8", t.name + "_scale"], [t.name]))
    nodes = added + list(g.node)
    del g.node[:]
    g.node.extend(nodes)
    onnx.save(model, path)


def nncf(source, path, folder, preset="performance", kind=None):
    import nncf as tool
    model = onnx.load(source)
    if model.opset_import[0].version < 13:
        raise ValueError("opset below 13")
    data = tool.Dataset([feeds(model, 10 + i) for i in range(2)])
    options = dict(preset=getattr(tool.QuantizationPreset, preset.upper()), subset_size=2, fast_bias_correction=True)
    if kind:
        options["model_type"] = tool.ModelType.TRANSFORMER
    onnx.save(tool.quantize(model, data, **options), path)


def nncf_weights(source, path, folder, mode="INT4_SYM"):
    import nncf as tool
    from onnx import version_converter
    model = onnx.load(source)
    if model.opset_import[0].version < 21:
        model = version_converter.convert_version(model, 21)
    options = dict(group_size=32, ratio=1.0, all_layers=True) if "4" in mode else {}
    onnx.save(tool.compress_weights(model, mode=getattr(tool.CompressWeightsMode, mode), **options), path)


def way(function, **options):
    return lambda source, path, folder: function(source, path, folder, **options)


PRODUCTS = ["Conv", "MatMul", "Gemm"]
WAYS = {
    "qdq": way(static),
    "qdqc": way(static, channel=True),
    "qdqs8": way(static, act="QInt8", channel=True),
    "qdqsym": way(static, act="QInt8", channel=True, extra=dict(ActivationSymmetric=True, WeightSymmetric=True)),
    "qdqu8": way(static, weight="QUInt8"),
    "qdqconv": way(static, channel=True, ops=PRODUCTS),
    "qdqrr": way(static, channel=True, reduce=True),
    "qdqpair": way(static, channel=True, extra=dict(DedicatedQDQPair=True, AddQDQPairToWeight=True)),
    "qdq16": way(static, act="QUInt16", channel=True, extra=dict(UseQDQContribOps=True)),
    "qop": way(static, form="QOperator"),
    "qopc": way(static, form="QOperator", channel=True),
    "qops8": way(static, form="QOperator", act="QInt8"),
    "dyn": way(dynamic),
    "dynu8": way(dynamic, weight="QUInt8"),
    "dync": way(dynamic, channel=True),
    "nb4": way(nbits),
    "nb4a": way(nbits, symmetric=False, level=4),
    "nb4qdq": way(nbits, form="QDQ"),
    "nb8": way(nbits, bits=8),
    "f16": way(half),
    "f16io": way(half, keep=True),
    "f16ort": way(half, keep=True, tool="ort"),
    "bf16": way(bf16),
    "fp8": way(fp8),
    "nncf": way(nncf),
    "nncfmix": way(nncf, preset="mixed"),
    "nncftr": way(nncf, kind="transformer"),
    "nncfw4": way(nncf_weights),
    "nncfw8": way(nncf_weights, mode="INT8_SYM"),
}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("models", nargs="+")
    p.add_argument("--ways", default=",".join(WAYS))
    a = p.parse_args()
    os.makedirs(a.folder, exist_ok=True)
    unknown = [w for w in a.ways.split(",") if w not in WAYS]
    if unknown:
        sys.exit("narrow: no such way: " + ", ".join(unknown))
    for source in a.models:
        for name in a.ways.split(","):
            label = "%s-%s" % (os.path.splitext(os.path.basename(source))[0], name)
            path = os.path.join(a.folder, label + ".onnx")
            if os.path.exists(path):
                continue
            with tempfile.TemporaryDirectory(dir=a.folder) as folder:
                part = os.path.join(folder, "part.onnx")
                try:
                    WAYS[name](source, part, folder)
                    os.replace(part, path)
                    print("%s: %.0f MB" % (label, os.path.getsize(path) / 1e6), flush=True)
                except Exception as why:  # whatever the tool cannot do
                    said = str(why).strip().splitlines()
                    print("%s: left out: %s" % (label, said[0][:160] if said else type(why).__name__), flush=True)


if __name__ == "__main__":
    main()
