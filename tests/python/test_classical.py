"""Operators of ai.onnx.ml against ONNX Runtime, on random numbers."""

import unittest

import numpy as np

try:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as e:
    raise unittest.SkipTest("no onnxruntime") from e

from hone import backend

RANDOM = np.random.default_rng(7)


def model_of(op: str, kind: int, shape: tuple, outputs: list, version: int, **attributes: object) -> bytes:
    node = helper.make_node(op, ["x"], [name for name, _ in outputs], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], op, [helper.make_tensor_value_info("x", kind, shape)],
                              [helper.make_tensor_value_info(name, t, None) for name, t in outputs])
    return helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 19), helper.make_opsetid("ai.onnx.ml", version)]).SerializeToString()


class AgainstOnnxRuntime(unittest.TestCase):
    def same(self, op: str, x: np.ndarray, outputs: list = (("y", TensorProto.FLOAT),), version: int = 3,
             **attributes: object) -> None:
        kind = helper.np_dtype_to_tensor_dtype(x.dtype) if x.dtype.kind != "U" else TensorProto.STRING
        model = model_of(op, kind, x.shape, outputs, version, **attributes)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        given = x.astype(object) if x.dtype.kind == "U" else x
        want = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, {"x": given})
        got = backend.prepare(model).run([x])
        with self.subTest(op, **attributes):
            for a, b in zip(got, want):
                self.assertEqual((a.shape, a.dtype), (np.asarray(b).shape, np.asarray(b).dtype))
                if a.dtype == object:
                    self.assertEqual(a.tolist(), np.asarray(b).tolist())
                else:
                    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)

    def numbers(self, rows: int, columns: int, dtype: str) -> np.ndarray:
        return RANDOM.normal(0, 3, (rows, columns)).astype(dtype)

    def test_features(self) -> None:
        for dtype in ("float32", "float64", "int64", "int32"):
            x = self.numbers(5, 4, dtype)
            kind = helper.np_dtype_to_tensor_dtype(x.dtype)
            self.same("Scaler", x, offset=[1.0, 2, 3, 4], scale=[0.5, 1, -2, 3])
            self.same("Scaler", x, offset=[1.0], scale=[0.5])
            for norm in ("L1", "L2", "MAX"):
                self.same("Normalizer", x, norm=norm)
            if dtype == "float32": # all that ONNX Runtime has
                self.same("Binarizer", x, [("y", kind)], threshold=0.25)
        x = self.numbers(5, 4, "float32")
        x[2] = 0
        for norm in ("L1", "L2", "MAX"):
            self.same("Normalizer", x, norm=norm)

    def test_linear(self) -> None:
        x = self.numbers(6, 4, "float32")
        for transform in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
            self.same("LinearRegressor", x, coefficients=RANDOM.normal(size=12).tolist(), targets=3,
                      intercepts=[0.5, -1.0, 2.0], post_transform=transform)
        self.same("LinearRegressor", x, coefficients=[1.0, 2.0, 3.0, 4.0])

    def test_trees(self) -> None:
        # Two full trees of depth 2 over 3 features, two targets.
        shape = {"nodes_treeids": [0] * 7 + [1] * 7, "nodes_nodeids": list(range(7)) * 2,
                 "nodes_truenodeids": [1, 3, 5, 0, 0, 0, 0] * 2, "nodes_falsenodeids": [2, 4, 6, 0, 0, 0, 0] * 2,
                 "nodes_featureids": RANDOM.integers(0, 3, 14).tolist(),
                 "nodes_values": RANDOM.normal(size=14).tolist(),
                 "target_treeids": [0] * 4 + [1] * 4, "target_nodeids": [3, 4, 5, 6] * 2,
                 "target_ids": [0] * 4 + [1] * 4, "target_weights": RANDOM.normal(size=8).tolist()}
        x = self.numbers(40, 3, "float32")
        for mode in ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"):
            for total in ("SUM", "AVERAGE", "MIN", "MAX"):
                self.same("TreeEnsembleRegressor", x, n_targets=2, aggregate_function=total, base_values=[0.5, -1.0],
                          nodes_modes=([mode] * 3 + ["LEAF"] * 4) * 2, **shape)

    def test_labels(self) -> None:
        words = np.array([["a", "b", "none"], ["ab", "", "a"]])
        self.same("LabelEncoder", words, [("y", TensorProto.INT64)], version=2, keys_strings=["a", "ab", "b"],
                  values_int64s=[1, 2, 3], default_int64=-7)
        self.same("LabelEncoder", np.array([1, 5, 9]), [("y", TensorProto.STRING)], version=2, keys_int64s=[9, 1],
                  values_strings=["nine", "one"])
        self.same("LabelEncoder", np.array([1, 5, np.nan], "f"), [("y", TensorProto.FLOAT)], version=4,
                  keys_floats=[1.0, float("nan")], values_floats=[2.0, 3.0], default_float=-1.0)


if __name__ == "__main__":
    unittest.main()
