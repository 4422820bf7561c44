"""Sessions: types, shapes, strings, sequences, copies, threads, mistakes."""

import gc
import os
import subprocess
import sys
import threading
import unittest

from common import ModelTest

import hone
import numpy as np
from hone.values import Given, _ML, _NUMPY, as_array, dtype_name

TYPES = {code: name for code, name in _NUMPY.items() if not name.startswith("complex")}


class Dlpack:
    """Another library's tensor."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **how: object) -> object:
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self) -> object:
        return self._array.__dlpack_device__()


class Elsewhere(Dlpack):
    def __dlpack__(self, **how: object) -> object:
        raise BufferError("it lies on a GPU")


class Types(ModelTest):
    def test_every_type_of_numpy(self) -> None:
        for code, name in TYPES.items():
            with self.subTest(name):
                kind = dtype_name(code)
                session = hone.Session(self.model(f"opset 21\ngraph g(%x: {kind}[2x3]) -> (%y) {{ %y = Transpose(%x) }}"))
                x = (np.arange(6) - (3 if np.dtype(name).kind in "if" else 0)).reshape(2, 3).astype(name)
                y = session.run({"x": x})["y"]
                self.assertEqual((session.inputs[0].type, y.dtype, y.shape), (kind, x.dtype, (3, 2)))
                np.testing.assert_array_equal(y, x.T)

    def test_types_of_ml_dtypes(self) -> None:
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("no ml_dtypes")
        for code, name in _ML.items():
            if not hasattr(ml_dtypes, name):
                continue
            with self.subTest(name):
                kind, dtype = dtype_name(code), getattr(ml_dtypes, name)
                session = hone.Session(self.model(
                    f"opset 25\ngraph g(%x: {kind}[4]) -> (%y, %f) {{ %y = Reshape(%x, i64[2]{{2, 2}})\n"
                    "%f = Cast(%x) {to=1} }"))
                x = np.array([1, -1, 0, 1] if name in ("int4", "int2") else [1, 2, 1, 2], "float32").astype(dtype)
                got = session.run({"x": x})
                self.assertEqual(got["y"].dtype, np.dtype(dtype))
                np.testing.assert_array_equal(got["y"].astype("f"), x.reshape(2, 2).astype("f"))
                np.testing.assert_array_equal(got["f"], x.astype("f"))

    def test_strings(self) -> None:
        session = hone.Session(self.model(
            "opset 20\ngraph g(%x: string[2x2], %z: string[2x2]) -> (%y) { %y = StringConcat(%x, %z) }"))
        x = np.array([["grün", ""], ["a", "北京"]])
        for given in (x, x.astype(object), np.char.encode(x, "utf-8")):
            y = session.run({"x": given, "z": np.array([["!", ""], ["b", "?"]])})["y"]
            self.assertEqual(y.tolist(), [["grün!", ""], ["ab", "北京?"]])

    def test_sequences_and_optionals(self) -> None:
        session = hone.Session(self.model(
            "opset 18\ngraph g(%s: seq f32, %x: f32[2], %o: optional f32) -> (%t, %has, %none) {\n"
            "%t = SequenceInsert(%s, %x)\n%has = OptionalHasElement(%o)\n%none = Identity(%o) }"))
        self.assertEqual([p.type for p in session.inputs], ["seq f32", "f32", "optional f32"])
        self.assertEqual(session.inputs[0].dtype, np.float32)
        x, first = np.array([1, 2], "f"), np.ones((2, 3), "f")
        got = session.run({"s": [first], "x": x, "o": None})
        self.assertEqual((len(got["t"]), bool(got["has"]), got["none"]), (2, False, None))
        np.testing.assert_array_equal(got["t"][0], first)
        np.testing.assert_array_equal(got["t"][1], x)
        got = session.run({"s": [], "x": x, "o": first})
        self.assertEqual((len(got["t"]), bool(got["has"])), (1, True))
        np.testing.assert_array_equal(got["none"], first)
        with self.assertRaisesRegex(hone.UsageError, "s: expected a list of arrays"):
            session.run({"s": first, "x": x, "o": None})

    def test_no_elements_and_no_dimensions(self) -> None:
        session = hone.Session(self.model("opset 20\ngraph g(%x: f32[n], %z: f32[]) -> (%y, %w) {\n"
                                          "%y = Relu(%x)  %w = Neg(%z) }"))
        got = session.run({"x": np.empty(0, "f"), "z": np.float32(2)})
        self.assertEqual((got["y"].shape, got["w"].shape, float(got["w"])), ((0,), (), -2.0))


class Memory(ModelTest):
    def setUp(self) -> None:
        super().setUp()
        self.session = hone.Session(self.model("opset 20\ngraph g(%x: f32[nx3]) -> (%y) { %y = Neg(%x) }"))

    def test_contiguous_arrays_are_not_copied(self) -> None:
        x = np.zeros((4, 3), "f")
        for given in (x, x[1:], Dlpack(x)):
            array = as_array("x", given)
            at = x.ctypes.data + (12 if given is not x and isinstance(given, np.ndarray) else 0)
            self.assertEqual(array.ctypes.data, at)
            self.assertEqual(Given("x", array, 1).tensor.data, at)

    def test_others_are(self) -> None:
        x = np.arange(12, dtype="f").reshape(3, 4)
        for given in (x.T, x.T.astype(">f4"), Dlpack(np.ascontiguousarray(x.T)), np.asfortranarray(x.T)):
            np.testing.assert_array_equal(self.session.run({"x": given})["y"], -x.T)

    def test_results_without_a_copy(self) -> None:
        x = np.ones((2, 3), "f")
        first = self.session.run({"x": x}, copy=False)["y"]
        second = self.session.run({"x": 2 * x}, copy=False)["y"]
        self.assertFalse(first.flags.writeable)
        np.testing.assert_array_equal(first, -x) # the second run had memory of its own
        np.testing.assert_array_equal(second, -2 * x)
        at, view = first.ctypes.data, first[1]
        del first
        gc.collect()
        np.testing.assert_array_equal(view, [-1] * 3)
        self.assertNotEqual(self.session.run({"x": x}, copy=False)["y"].ctypes.data, at)
        del view
        gc.collect()
        self.assertEqual(self.session.run({"x": x}, copy=False)["y"].ctypes.data, at)

    def test_results_outlive_the_session(self) -> None:
        y = self.session.run({"x": np.ones((2, 3), "f")}, copy=False)["y"]
        del self.session
        gc.collect()
        np.testing.assert_array_equal(y, -np.ones((2, 3)))

    def test_results_offer_dlpack(self) -> None:
        y = self.session.run({"x": np.ones((2, 3), "f")})["y"]
        self.assertEqual(np.from_dlpack(y).ctypes.data, y.ctypes.data)

    def test_a_tensor_of_a_gpu_is_refused(self) -> None:
        with self.assertRaisesRegex(hone.UsageError, "x: this DLPack tensor cannot be read: it lies on a GPU"):
            self.session.run({"x": Elsewhere(np.ones((2, 3), "f"))})


class Runs(ModelTest):
    def test_shapes_make_plans(self) -> None:
        session = hone.Session(self.model("opset 20\ngraph g(%x: f32[nx3]) -> (%y) { %y = Neg(%x) }"), threads=1)
        self.assertEqual((session.inputs[0].shape, session.precision), (("n", 3), ""))
        for n in list(range(1, 12)) + [1, 5]:
            self.assertEqual(session.run({"x": np.ones((n, 3), "f")})["y"].shape, (n, 3))
        self.assertEqual(session.precision, "f32")

    def test_given_shapes(self) -> None:
        path = self.model("opset 20\ngraph g(%x: f32[nx3]) -> (%y) { %y = Neg(%x) }")
        session = hone.Session(path, shapes={"x": (2, 3)})
        self.assertEqual(session.precision, "f32")
        self.assertEqual(session.run({"x": np.ones((2, 3), "f")})["y"].shape, (2, 3))
        with self.assertRaisesRegex(hone.UsageError, "no input 'q'"):
            hone.Session(path, shapes={"q": (2, 3)})

    def test_bytes_zoo_and_saved_plans(self) -> None:
        path = self.model("opset 20\ngraph g(%x: f32[2x3]) -> (%y) { %y = Neg(%x) }")
        saved = os.path.join(self.folder, "m.hone")
        told = hone.optimize(path, saved, threads=1)
        self.assertIsInstance(told, dict)
        with open(path, "rb") as f:
            data = f.read()
        x = np.arange(6, dtype="f").reshape(2, 3)
        for model in (path, data, saved):
            session = hone.Session(model)
            self.assertEqual([p.shape for p in session.inputs + session.outputs], [(2, 3)] * 2)
            np.testing.assert_array_equal(session.run({"x": x})["y"], -x)
        zoo = hone.Session("zoo:mobilenetv2", threads=1)
        self.assertEqual(zoo.inputs[0].shape, ("N", 3, 224, 224))

    def test_several_threads(self) -> None:
        session = hone.Session(self.model("opset 20\ngraph g(%x: f32[64x64]) -> (%y) { %y = MatMul(%x, %x) }"), threads=2)
        wrong = []

        def work(seed: int) -> None:
            x = np.random.default_rng(seed).integers(-4, 5, (64, 64)).astype("f")
            for _ in range(20):
                if not (session.run({"x": x})["y"] == x @ x).all():
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_the_gil_is_released(self) -> None:
        # A run that lasts until its time is over, and another thread that gets on meanwhile.
        session = hone.Session(self.model(
            "opset 20\ngraph g(%n: i64[], %x: f32[]) -> (%y) {\n"
            "%y = Loop(%n, _, %x) {body=graph b(%i: i64[], %c: bool[], %v: f32[]) -> (%k, %w) {\n"
            "%k = Identity(%c)  %w = Cos(%v) }} }"))
        counted, stop = [0], threading.Event()

        def count() -> None:
            while not stop.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        try:
            before = counted[0]
            with self.assertRaises(hone.ResourceError):
                session.run({"n": np.int64(2**60), "x": np.float32(1)}, max_seconds=0.5)
            self.assertGreater(counted[0] - before, 0)
        finally:
            stop.set()
            thread.join()


class Mistakes(ModelTest):
    def test_inputs(self) -> None:
        session = hone.Session(self.model("opset 20\ngraph g(%x: f32[2x3]) -> (%y) { %y = Neg(%x) }"))
        x = np.ones((2, 3), "f")
        for given, says in (({}, "no value for input 'x'"), ({"x": x, "q": x}, "no input 'q' .it has x"),
                            ({"x": x.astype("d")}, r"x: expected float32, got float64 \(.astype"),
                            ({"x": x[0]}, r"x: expected f32\[2x3\], got 3"),
                            ({"x": np.ones((2, 4), "f")}, r"x: expected f32\[2x3\], got 2x4"),
                            ({"x": np.ones((1,) * 9, "f")}, "x: "), ({"x": x.astype("U")}, "x: expected float32")):
            with self.subTest(says), self.assertRaisesRegex(hone.UsageError, says):
                session.run(given)
        np.testing.assert_array_equal(session.run({"x": x})["y"], -x)

    def test_models(self) -> None:
        with self.assertRaises(hone.InputError) as caught:
            hone.Session(self.folder + "/none.onnx")
        e = caught.exception
        self.assertEqual((e.exit_code, e.hint), (3, "check the path"))
        self.assertIn("none.onnx", str(e))
        self.assertIn(e.hint, str(e))
        self.assertIsInstance(e, ValueError)
        with self.assertRaises(hone.InputError):
            hone.Session(b"this is no model")
        with self.assertRaises(hone.UsageError):
            hone.Session("zoo:none")
        path = self.model("opset 20\ngraph g(%x: f32[2x3]) -> (%y) { %y = Neg(%x) }")
        for options in ({"device": "abacus"}, {"precision": "f17"}, {"threads": -1}, {"level": 9}):
            with self.subTest(options), self.assertRaises(hone.UsageError):
                hone.Session(path, **options)

    def test_without_cuda(self) -> None:
        path = self.model("opset 20\ngraph g(%x: f32[2x3]) -> (%y) { %y = Neg(%x) }")
        with self.assertRaises(hone.HoneError) as caught: # no machine has that many
            hone.Session(path, device="cuda:99")
        self.assertTrue(str(caught.exception))


class Processes(ModelTest):
    def test_the_command(self) -> None:
        said = subprocess.run([sys.executable, "-m", "hone", "version"], capture_output=True, text=True, check=True).stdout
        self.assertIn(hone.__version__, said)
        bad = subprocess.run([sys.executable, "-m", "hone", "nonsense"], capture_output=True, text=True)
        self.assertEqual(bad.returncode, 2)

    def test_no_library(self) -> None:
        done = subprocess.run([sys.executable, "-c", "import hone"], capture_output=True, text=True,
                              env={**os.environ, "HONE_LIBRARY": "/nonexistent/libhone.so"})
        self.assertIn("HONE_LIBRARY names the file", done.stderr)

    def test_documents(self) -> None:
        path = self.model("opset 20\ngraph g(%x: f32[2x3]) -> (%y) { %y = Neg(%x) }")
        other = self.model("opset 20\ngraph g(%x: f32[2x3]) -> (%y) { %y = Exp(%x) }", "o.onnx")
        facts = os.path.join(self.folder, "facts.json")
        self.assertEqual(hone.profile(path, runs=3, threads=1, shape={"x": (2, 3)}, output=facts)["schema"], "hone facts")
        self.assertIn("findings", hone.diagnose(facts))
        self.assertEqual(hone.verify(path, inputs=8, threads=1)["verdict"], "same")
        self.assertEqual(hone.verify(path, other, inputs=8, threads=1)["verdict"], "different")
        with self.assertRaises(hone.UsageError) as caught:
            hone.profile(path, nonsense=1)
        self.assertEqual(caught.exception.exit_code, 2)
        with self.assertRaises(hone.InputError):
            hone.diagnose(path)


if __name__ == "__main__":
    unittest.main()
