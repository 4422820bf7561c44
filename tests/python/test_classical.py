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
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
NUMBERS = [("label", TensorProto.INT64), ("score", TensorProto.FLOAT)]
WORDS = [("label", TensorProto.STRING), ("score", TensorProto.FLOAT)]


def model_of(op: str, kind: int, shape: tuple, outputs: list, version: int, **attributes: object) -> bytes:
    node = helper.make_node(op, ["x"], [name for name, _ in outputs], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], op, [helper.make_tensor_value_info("x", kind, shape)],
                              [helper.make_tensor_value_info(name, t, None) for name, t in outputs])
    return helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 19), helper.make_opsetid("ai.onnx.ml", version)]).SerializeToString()


class AgainstOnnxRuntime(unittest.TestCase):
    def same(self, op: str, x: np.ndarray, outputs: list = (("y", TensorProto.FLOAT),), version: int = 3,
             near: float = 2e-6, **attributes: object) -> None:
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
                    np.testing.assert_allclose(a, b, rtol=2e-5, atol=near)

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

    def test_labels_of_version_1(self) -> None:
        classes = ["a", "b", "", "b"]
        self.same("LabelEncoder", np.array(["b", "", "c", "a"]), [("y", TensorProto.INT64)], 1, classes_strings=classes,
                  default_int64=-7)
        for x in ([0, 3, 2, -1, 4, 1 << 40], []):
            self.same("LabelEncoder", np.array(x, "i8"), [("y", TensorProto.STRING)], 1, classes_strings=classes)

    def test_linear(self) -> None:
        x = self.numbers(6, 4, "float32")
        for transform in TRANSFORMS[:4]: # the regressor of ONNX Runtime does not do PROBIT
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

    def test_linear_classifiers(self) -> None:
        x = self.numbers(20, 4, "float32")
        for transform in TRANSFORMS[:4]:
            weights = {"coefficients": RANDOM.normal(size=12).tolist(), "intercepts": [0.5, -1.0, 2.0],
                       "post_transform": transform}
            self.same("LinearClassifier", x, NUMBERS, classlabels_ints=[7, -1, 3], **weights)
            self.same("LinearClassifier", x, WORDS, classlabels_strings=["a", "", "c"], **weights)
            weights = {"coefficients": RANDOM.normal(size=4).tolist(), "intercepts": [0.5], "post_transform": transform}
            self.same("LinearClassifier", x, NUMBERS, classlabels_ints=[5, 6], **weights)
            self.same("LinearClassifier", x, WORDS, classlabels_strings=["no", "yes"], **weights)
        for dtype in ("float64", "int64", "int32"):
            self.same("LinearClassifier", self.numbers(9, 4, dtype), NUMBERS, classlabels_ints=[0, 1],
                      coefficients=RANDOM.normal(size=8).tolist(), intercepts=[0.0, 0.25], post_transform="SOFTMAX")
        # PROBIT is of probabilities
        x = RANDOM.uniform(0.06, 0.2, (10, 2)).astype("float32")
        self.same("LinearClassifier", x, NUMBERS, classlabels_ints=[0, 1, 2], coefficients=[1.0, 1, 2, 0.5, 0.5, 1],
                  intercepts=[0.0, 0, 0], post_transform="PROBIT", near=2e-5) # it computes in float

    def test_tree_classifiers(self) -> None:
        x = self.numbers(60, 3, "float32")
        for classes in (2, 3):
            for ids in ([0], [1], [0, 1, 2])[:classes]:
                for transform in TRANSFORMS[:4]:
                    for sign in (0, 1):
                        for base in ([], [0.25], [0.25] * classes):
                            # ONNX Runtime counts base values twice or not at all where two classes have them, and of
                            # three classes one base value is not defined.
                            if base and not (len(base) == 1 and ids == [0] if classes == 2 else len(base) == 3):
                                continue
                            weights = RANDOM.normal(size=8)
                            voted = [ids[i % len(ids)] for i in range(8)]
                            tree = {"nodes_treeids": [0] * 7 + [1] * 7, "nodes_nodeids": list(range(7)) * 2,
                                    "nodes_truenodeids": [1, 3, 5, 0, 0, 0, 0] * 2,
                                    "nodes_falsenodeids": [2, 4, 6, 0, 0, 0, 0] * 2,
                                    "nodes_featureids": RANDOM.integers(0, 3, 14).tolist(),
                                    "nodes_modes": (["BRANCH_LEQ"] * 3 + ["LEAF"] * 4) * 2,
                                    "nodes_values": RANDOM.normal(size=14).tolist(), "class_treeids": [0] * 4 + [1] * 4,
                                    "class_nodeids": [3, 4, 5, 6] * 2, "class_ids": voted,
                                    "class_weights": (np.abs(weights) / 2 if sign else weights).tolist()}
                            if base:
                                tree["base_values"] = base
                            labels = ({"classlabels_int64s": [7, -1, 3][:classes]} if sign else
                                      {"classlabels_strings": ["a", "b", "c"][:classes]})
                            self.same("TreeEnsembleClassifier", x, NUMBERS if sign else WORDS, post_transform=transform,
                                      **labels, **tree)

    def test_support_vectors(self) -> None:
        x = self.numbers(12, 3, "float32") / 3
        for kernel, params in (("LINEAR", [0.5, 0, 3]), ("POLY", [0.5, 1.0, 3.0]), ("RBF", [0.7, 0, 3]),
                               ("SIGMOID", [0.3, 0.1, 3])):
            machine = {"kernel_type": kernel, "kernel_params": [float(p) for p in params]}
            self.same("SVMRegressor", x, n_supports=4, rho=[0.25], coefficients=RANDOM.normal(size=4).tolist(),
                      support_vectors=RANDOM.normal(size=12).tolist(), **machine)
            self.same("SVMRegressor", x, n_supports=4, rho=[0.25], coefficients=RANDOM.normal(size=4).tolist(),
                      support_vectors=RANDOM.normal(size=12).tolist(), one_class=1, **machine)
            for classes, transform in ((2, "NONE"), (3, "NONE"), (2, "LOGISTIC"), (3, "SOFTMAX"), (3, "LOGISTIC")):
                vectors, machines = [2, 3, 1][:classes], classes * (classes - 1) // 2
                lists = {"vectors_per_class": vectors, "rho": RANDOM.normal(size=machines).tolist(),
                         "support_vectors": RANDOM.normal(size=3 * sum(vectors)).tolist(),
                         "coefficients": RANDOM.normal(size=(classes - 1) * sum(vectors)).tolist(),
                         "post_transform": transform, **machine}
                self.same("SVMClassifier", x, NUMBERS, classlabels_ints=[4, -1, 9][:classes], **lists)
                self.same("SVMClassifier", x, WORDS, classlabels_strings=["a", "b", "c"][:classes],
                          prob_a=RANDOM.normal(size=machines).tolist(), prob_b=RANDOM.normal(size=machines).tolist(),
                          **lists)
        self.same("SVMRegressor", x, n_supports=0, coefficients=[1.0, 2.0, -1.0], rho=[0.5],
                  kernel_type="LINEAR", kernel_params=[0.0, 0, 0])
        for weights in (RANDOM.normal(size=6), np.abs(RANDOM.normal(size=6))):
            self.same("SVMClassifier", x, NUMBERS, classlabels_ints=[4, -1], coefficients=weights.tolist(), rho=[0.5],
                      kernel_type="LINEAR", kernel_params=[0.0, 0, 0])

    def test_categories(self) -> None:
        words = np.array([["a", "b", "none"], ["ab", "", "a"]])
        self.same("OneHotEncoder", words, version=1, cats_strings=["a", "ab", "b"], zeros=1)
        for dtype in ("int64", "float32", "float64"):
            self.same("OneHotEncoder", np.array([[1, 5], [2, 0]], dtype), version=1, cats_int64s=[0, 1, 2, 3, 5], zeros=0)
        lists = {"cats_strings": ["a", "ab", "b"], "cats_int64s": [4, 5, 6], "default_int64": -9,
                 "default_string": "other"}
        self.same("CategoryMapper", words, [("y", TensorProto.INT64)], version=1, **lists)
        self.same("CategoryMapper", np.array([5, 6, 7]), [("y", TensorProto.STRING)], version=1, **lists)
        x = np.array([[1, np.nan, 3], [np.nan, 5, np.nan]], "float32")
        self.same("Imputer", x, version=1, imputed_value_floats=[7.0, 8, 9], replaced_value_float=float("nan"))
        self.same("Imputer", x, version=1, imputed_value_floats=[7.0], replaced_value_float=3.0)
        self.same("Imputer", np.array([[1, 2], [2, 3]]), [("y", TensorProto.INT64)], version=1,
                  imputed_value_int64s=[7, 8], replaced_value_int64=2)
        for width in (2, 3, 5):
            self.same("FeatureVectorizer", self.numbers(2, 3, "float32"), version=1, inputdimensions=[width])

    def test_maps(self) -> None:
        x = np.array([[0.25, 0.75], [1.0, 0.0]], "float32")
        for labels, key in (({"classlabels_int64s": [7, -1]}, TensorProto.INT64),
                            ({"classlabels_strings": ["no", "yes"]}, TensorProto.STRING)):
            vocabulary = [*labels.values()][0][::-1] + [*labels.values()][0][:1]
            member = helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
            zipped = helper.make_value_info("y", helper.make_sequence_type_proto(member))
            nodes = [helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **labels)]
            graph = helper.make_graph(nodes, "maps", [helper.make_tensor_value_info("x", 1, [2, 2])], [zipped])
            zip_map = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("ai.onnx.ml", 1)])
            given = helper.make_value_info("m", member)
            name = "string_vocabulary" if key == TensorProto.STRING else "int64_vocabulary"
            nodes = [helper.make_node("DictVectorizer", ["m"], ["v"], domain="ai.onnx.ml", **{name: vocabulary})]
            graph = helper.make_graph(nodes, "vector", [given], [helper.make_tensor_value_info("v", 1, None)])
            vectorizer = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("ai.onnx.ml", 1)])
            got = {}
            for model, value in ((zip_map, {"x": x}), (vectorizer, {"m": dict(zip([*labels.values()][0],
                                                                                 (0.25, 0.75)))})):
                session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
                got[model.graph.name] = (backend.prepare(model).run(value)[0], session.run(None, value)[0])
            self.assertEqual(*got["maps"])
            np.testing.assert_array_equal(*got["vector"])
            self.assertEqual(got["vector"][0].tolist(), [[0.75, 0.25, 0.25]])
            with self.assertRaisesRegex(Exception, "expected a dict"):
                backend.prepare(vectorizer).run({"m": [1]})
            self.assertEqual(backend.prepare(vectorizer).run({"m": {}})[0].tolist(), [[0, 0, 0]])
            with self.assertRaisesRegex(Exception, "^m: values: wrong type; expected float32, got str$"):
                backend.prepare(vectorizer).run({"m": {[*labels.values()][0][0]: "2.5"}})
            if key == TensorProto.INT64: # numpy would make 7 of it
                with self.assertRaisesRegex(Exception, "^m: keys: wrong type; expected int64, got float64$"):
                    backend.prepare(vectorizer).run({"m": {7.5: 1.0}})

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
