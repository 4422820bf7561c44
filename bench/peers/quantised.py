"""The networks in 8 bits, as files that both engines read: QDQ as `hone quantize` writes it, and bert_base with products of
codes whose scales are found at run time, as ONNX Runtime's quantize_dynamic writes it."""
import os

from engines import Broken, output_of

DYNAMIC = ["bert_base"]


def dynamic(source, path):
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as why:
        raise Broken("quantize_dynamic needs the Python package onnx: %s" % why)
    quantize_dynamic(source, path + ".part", weight_type=QuantType.QInt8)
    os.replace(path + ".part", path)


def quantised(hone, name, source):
    """(label, file); written anew when the float model is newer."""
    way = "dynamic" if name in DYNAMIC else "QDQ"
    path = "%s_%s.onnx" % (os.path.splitext(source)[0], way.lower())
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(source):
        if name in DYNAMIC:
            dynamic(source, path)
        else:
            output_of([hone, "quantize", source, "-o", path, "--calib", "random", "--target", "ort"])
    return "%s, %s" % (name, way), path
