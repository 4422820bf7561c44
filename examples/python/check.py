"""check.py MODEL.onnx: runs a model on random numbers, rewrites it, and proves that the answers stay the same."""

import os
import sys
import tempfile

import hone
import numpy as np


def random_inputs(session: hone.Session) -> dict:
    """An array for every input; dimensions that the model leaves open become 1."""
    rng = np.random.default_rng(1)
    arrays = {}
    for port in session.inputs:
        shape = [d if isinstance(d, int) else 1 for d in port.shape]
        if port.type != "f32":
            raise SystemExit(f"check.py: input {port.name} is {port.type}; only f32 here")
        arrays[port.name] = rng.standard_normal(shape, dtype=np.float32)
    return arrays


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        session = hone.Session(sys.argv[1])
        inputs = random_inputs(session)
        before = session.run(inputs)
        with tempfile.TemporaryDirectory() as folder:
            fast = os.path.join(folder, "fast.onnx")
            hone.optimize(sys.argv[1], fast)
            after = hone.Session(fast).run(inputs)
            proof = hone.verify(sys.argv[1], fast, inputs=3)
    except hone.HoneError as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 3
    for name, array in before.items():
        print(f"{name}: {array.dtype} {array.shape}, largest difference {np.abs(after[name] - array).max():.2g}")
    print("verify:", proof["verdict"])
    return 0 if proof["verdict"] == "same" else 1


if __name__ == "__main__":
    sys.exit(main())
