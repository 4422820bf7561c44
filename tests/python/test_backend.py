"""hone as a backend of ONNX."""

import unittest

from common import ModelTest

import numpy as np

try:
    import onnx
    from onnx import helper
except ImportError as e:
    raise unittest.SkipTest("no onnx") from e

import hone
from hone import backend


class Backend(ModelTest):
    def setUp(self) -> None:
        super().setUp()
        self.proto = onnx.load(self.model("opset 20\ngraph g(%x: f32[2], %z: f32[2]) -> (%y, %w) {\n"
                                          "%y = Sub(%x, %z)  %w = Mul(%x, %z) }"))
        self.x, self.z = np.array([5, 7], "f"), np.array([2, 3], "f")

    def test_inputs_by_place_and_by_name(self) -> None:
        ready = backend.prepare(self.proto)
        for given in ([self.x, self.z], {"z": self.z, "x": self.x}):
            y, w = ready.run(given)
            np.testing.assert_array_equal(y, [3, 4])
            np.testing.assert_array_equal(w, [10, 21])
        with self.assertRaisesRegex(hone.UsageError, "too many values; expected at most 2, got 3"):
            ready.run([self.x] * 3)
        np.testing.assert_array_equal(backend.run_model(self.proto, [self.z, self.x], level=0)[0], [-3, -4])

    def test_one_node(self) -> None:
        node = helper.make_node("Add", ["a", "b"], ["c"])
        for about in (None, [(np.float32, (2,))]):
            (c,) = backend.run_node(node, [self.x, self.z], outputs_info=about)
            np.testing.assert_array_equal(c, [7, 10])
        node = helper.make_node("Add", ["a", "a"], ["c"])
        np.testing.assert_array_equal(backend.run_node(node, [self.x])[0], [10, 14])
        with self.assertRaises(hone.UsageError):
            backend.run_node(node, [self.x, self.z])
        with self.assertRaises(hone.UnsupportedError):
            backend.run_node(helper.make_node("Nonsense", ["a"], ["c"], domain="no.such"), [self.x])

    def test_devices(self) -> None:
        self.assertTrue(backend.supports_device("CPU"))
        self.assertFalse(backend.supports_device("CUDA:99"))
        self.assertFalse(backend.supports_device("ABACUS"))


if __name__ == "__main__":
    unittest.main()
