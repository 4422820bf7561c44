"""Models of one MatMulNBits each, with the sizes of language models' layers, for kernels that read the codes.

    python3 bench/peers/nbits.py FOLDER [NAME...]

A NAME is KxN_BITS_BLOCK_TYPE, such as 4096x14336_4_32_f16; behind it may be _zeros, for packed zero points. x is
[1, rows, K], of any rows:

    hone bench FOLDER/4096x14336_4_32_f16.onnx --device cuda --shape rows=1

Without names: the ones in ALL below. Needs `pip install onnx numpy`. Random weights."""
import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

ALL = ("4096x4096_4_32_f16", "4096x4096_4_32_f16_zeros", "4096x4096_4_128_f16", "4096x14336_4_32_f16", "14336x4096_4_32_f16",
       "4096x1024_4_32_f16", "4096x128256_4_32_f16", "4096x4096_8_32_f16", "4096x4096_4_32_f32")


def build(folder, name):
    size, bits, block, kind, *zeros = name.split("_")
    k, n = (int(i) for i in size.split("x"))
    bits, block = int(bits), int(block)
    random = np.random.RandomState(7)
    blocks = (k + block - 1) // block
    number = np.float16 if kind == "f16" else np.float32
    of_file = TensorProto.FLOAT16 if kind == "f16" else TensorProto.FLOAT
    values = [("codes", random.randint(0, 256, (n, blocks, block * bits // 8), np.uint8)),
              ("scales", ((random.rand(n * blocks) + 0.5) / (np.sqrt(k) * 2 ** (bits - 2))).astype(number))]
    if zeros:
        values.append(("zeros", random.randint(0, 256, (n * ((blocks * bits + 7) // 8),), np.uint8)))
    node = helper.make_node("MatMulNBits", ["x"] + [v[0] for v in values], ["y"], domain="com.microsoft", K=k, N=n, bits=bits,
                            block_size=block)
    graph = helper.make_graph([node], name, [helper.make_tensor_value_info("x", of_file, [1, "rows", k])],
                              [helper.make_tensor_value_info("y", of_file, [1, "rows", n])],
                              [numpy_helper.from_array(v, i) for i, v in values])
    save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21),
                                                               helper.make_opsetid("com.microsoft", 1)]),
         os.path.join(folder, name + ".onnx"))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for name in sys.argv[2:] or ALL:
        build(sys.argv[1], name)


if __name__ == "__main__":
    main()
