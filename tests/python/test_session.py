"""Sessions: types, shapes, strings, sequences, copies, threads, mistakes."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import unittest
import weakref

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


class Spent(Dlpack):
    def __dlpack__(self, **how: object) -> object:
        return 5


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

    def test_large_results_of_ml_dtypes(self) -> None:
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("no ml_dtypes")
        for name, dtype, of in (("bf16", ml_dtypes.bfloat16, "u2"), ("f8e5m2", ml_dtypes.float8_e5m2, "u1")):
            x = (np.arange(1 << 21) % 16).astype(dtype)
            session = hone.Session(self.model(
                f"opset 21\ngraph g(%x: {name}[{x.size}]) -> (%y) {{ %y = Reshape(%x, i64[2]{{2, -1}}) }}"))
            for _ in range(2): # the second in memory that the first gave back
                y = session.run({"x": x})["y"]
                self.assertEqual(y.dtype, x.dtype)
                np.testing.assert_array_equal(y.view(of), x.view(of).reshape(2, -1))
                del y

    def test_strings(self) -> None:
        session = hone.Session(self.model(
            "opset 20\ngraph g(%x: string[2x2], %z: string[2x2]) -> (%y) { %y = StringConcat(%x, %z) }"))
        x = np.array([["grün", ""], ["a", "北京"]])
        for given in (x, x.astype(object), np.char.encode(x, "utf-8")):
            y = session.run({"x": given, "z": np.array([["!", ""], ["b", "?"]])})["y"]
            self.assertEqual(y.tolist(), [["grün!", ""], ["ab", "北京?"]])

    def test_strings_that_lie_anywhere(self) -> None:
        session = hone.Session(self.model(
            "opset 20\ngraph g(%x: string[?], %i: i64[?]) -> (%y) { %y = Gather(%x, %i) {axis=0} }"))
        for texts in (["one", "", "three", "x" * 5000], ["grün", "", "北京"], ["", ""], ["a"]):
            places = [len(texts) - 1, 0, *range(len(texts)), 0]
            y = session.run({"x": np.array(texts, object), "i": np.array(places)})["y"]
            self.assertEqual(y.tolist(), [texts[i] for i in places])

    def test_grams_of_texts(self) -> None:
        session = hone.Session(self.model(
            "opset 20\ngraph g(%x: string[2x4]) -> (%y) { %y = TfIdfVectorizer(%x) {mode=\"TFIDF\", min_gram_length=1, "
            "max_gram_length=2, max_skip_count=1, ngram_counts=[0, 3], ngram_indexes=[3, 0, 1, 2], "
            "pool_strings=[\"a\", \"b\", \"\", \"a\", \"b\"], weights=[1.0, 2.0, 3.0, 0.5]} }"))
        y = session.run({"x": np.array([["a", "b", "b", "c"], ["", "b", "", "ab"]])})["y"]
        self.assertEqual(y.tolist(), [[4, 0, 1, 1], [2, 6, 0, 0]])

    def test_strings_that_are_no_text(self) -> None:
        session = hone.Session(self.model("opset 20\ngraph g(%x: string[2]) -> (%y) { %y = Identity(%x) }"))
        y = session.run({"x": np.array([b"\xff\x00a", "gr\u00fcn".encode("latin1")], object)})["y"]
        self.assertEqual(y.tolist(), ["\udcff\0a", "gr\udcfcn"])
        self.assertEqual([s.encode("utf-8", "surrogateescape") for s in y], [b"\xff\x00a", b"gr\xfcn"])
        self.assertEqual(session.run({"x": y})["y"].tolist(), y.tolist()) # and in again
        for given, says in ((["a", None], r"x\[1\]: wrong type; expected str or bytes, got NoneType$"),
                            (["a", 1], r"x\[1\]: wrong type; expected str or bytes, got int$"),
                            (np.array([1.5, "a"], object), r"x\[0\]: wrong type; expected str or bytes, got float$"),
                            (np.array([1, 2]), "x: wrong type; expected str, got int64$"),
                            (["a", "\ud800"], r"x\[1\]: this str has no UTF-8"),
                            (None, "x: there is no value; expected an array, got None")):
            with self.subTest(says), self.assertRaisesRegex(hone.UsageError, says):
                session.run({"x": given})
        matrix = hone.Session(self.model("opset 20\ngraph g(%x: string[1x2]) -> (%y) { %y = Identity(%x) }"))
        with self.assertRaisesRegex(hone.UsageError, r"x\[0, 1\]: wrong type; expected str or bytes, got NoneType"):
            matrix.run({"x": [["a", None]]})

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
        with self.assertRaisesRegex(hone.UsageError, "s: wrong type; expected a list of arrays .*, got ndarray"):
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

    def test_results_into_arrays(self) -> None:
        session = hone.Session(self.model("opset 20\ngraph g(%x: f32[nx4]) -> (%y, %z, %at) {\n"
                                          "%y = Neg(%x)  %z = Abs(%x)  %at = NonZero(%x) }"))
        y, at = np.zeros((3, 4), "f"), np.zeros(30, "i8")
        for i in range(4):
            x = np.arange(12, dtype="f").reshape(3, 4) - i
            got = session.run({"x": x}, into={"y": y, "at": at} if i != 2 else None)
            self.assertEqual(got["y"] is y, i != 2)
            self.assertEqual(np.shares_memory(got["at"], at), i != 2)
            np.testing.assert_array_equal(got["y"], -x)
            np.testing.assert_array_equal(got["z"], abs(x))
            np.testing.assert_array_equal(got["at"], np.nonzero(x))
        x = np.ones((3, 4), "f")
        deep = hone.Session(self.model("opset 20\ngraph g(%x: f32) -> (%y) { %y = Neg(%x) }", "deep.onnx"))
        with self.assertRaisesRegex(hone.UsageError, r"^into\['y'\]: too many dimensions; expected at most 8, got 9$"):
            deep.run({"x": np.ones(1, "f")}, into={"y": np.zeros((1,) * 9, "f")})
        for into, what in (({"w": y}, "no output 'w'"), ([y], "wrong type"), ({"y": y.tolist()}, "wrong type"),
                           ({"y": y.astype("d")}, "wrong type"), ({"y": y[:, ::2]}, "not contiguous"),
                           ({"y": np.broadcast_to(y[0].copy(), (1, 4))}, "read-only"), ({"y": y[:2]}, "does not fit"),
                           ({"at": at[:5]}, "too small"), ({"y": y, "z": y}, "overlaps"), ({"y": x}, "overlaps")):
            with self.assertRaises(hone.UsageError) as e:
                session.run({"x": x}, into=into)
            self.assertIn(what, str(e.exception))
        with self.assertRaises(hone.UsageError):
            session.run({"x": x}, copy=False, into={"y": y})
        np.testing.assert_array_equal(session.run({"x": x})["y"], -x)

    def test_large_results_are_their_own(self) -> None:
        session = hone.Session(self.model("opset 20\ngraph g(%x: f32[nx1024]) -> (%y, %z) {\n"
                                          "%y = Neg(%x)  %z = Abs(%x) }"))
        x, kept = np.linspace(-1, 1, 300 << 10, dtype="f").reshape(300, 1024), []
        for i in range(1, 6):
            got = session.run({"x": i * x}, copy=i != 3)
            kept.append((i, got))
            if i == 2: # memory of results that are gone becomes that of others
                del kept[0]
        for i, got in kept:
            np.testing.assert_array_equal(got["y"], -i * x)
            np.testing.assert_array_equal(got["z"], abs(i * x))
            self.assertEqual(got["y"].flags.writeable, i != 3)
        again = session.run({"x": kept[0][1]["y"]}) # a result as an input
        np.testing.assert_array_equal(again["y"], 2 * x)

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
        with self.assertRaisesRegex(hone.UsageError, "x: this DLPack tensor cannot be read: PyCapsule"):
            self.session.run({"x": Spent(np.ones((2, 3), "f"))})


class Runs(ModelTest):
    def test_shapes_make_plans(self) -> None:
        session = hone.Session(self.model("opset 20\ngraph g(%x: f32[nx3]) -> (%y) { %y = Neg(%x) }"), threads=1)
        self.assertEqual((session.inputs[0].shape, session.precision), (("n", 3), ""))
        for n in list(range(1, 12)) + [1, 5]:
            self.assertEqual(session.run({"x": np.ones((n, 3), "f")})["y"].shape, (n, 3))
        self.assertEqual(session.precision, "f32")

    GROWS = '''opset 17
graph g(%x: f32[1x1x8], %past: f32[1xPx8]) -> (%y, %present, %half) {
  const %w: f32[8x8] = rand(1)
  %k = MatMul(%x, %w)
  %present = Concat(%past, %k) {axis=1}
  %s = Shape(%present) %n = Gather(%s, i64{1}) %f = Cast(%n) {to=1} %half = Mul(%f, f32{0.5})
  %t = Transpose(%present) {perm=[0, 2, 1]}
  %a = MatMul(%x, %t) %p = Softmax(%a)
  %y = MatMul(%p, %present)
}'''

    def test_a_past_that_grows(self) -> None:
        path = self.model(self.GROWS)
        session = hone.Session(path, threads=1)
        x, past = np.linspace(-1, 1, 8, dtype="f").reshape(1, 1, 8), np.zeros((1, 2, 8), "f")
        for _ in range(40):
            got = session.run({"x": x, "past": past})
            want = hone.Session(path, threads=1).run({"x": x, "past": past})
            for name in want:
                np.testing.assert_allclose(got[name], want[name], rtol=1e-5, atol=1e-6)
            x, past = got["y"], got["present"]
        self.assertLess(len(session._plans), 6) # the others became those of longer pasts
        # What was given without a copy stays as it is while other plans move.
        kept = session.run({"x": x, "past": past}, copy=False)
        was = {name: value.copy() for name, value in kept.items()}
        for n in range(60, 80):
            session.run({"x": x, "past": np.ones((1, n, 8), "f")})
        for name, value in kept.items():
            np.testing.assert_array_equal(value, was[name])

    # Turned by positions, whose table is of 16 bits, too: what follows from sizes is widened.
    HALVES = '''opset 17
graph g(%x: f16[1x1x16], %past: f16[1x2xPx8]) -> (%y, %present) {
  const %w: f32[16x16] = rand(1)
  const %t: f32[64x4] = rand(2)
  %w16 = Cast(%w) {to=10} %t16 = Cast(%t) {to=10}
  %s = Shape(%past) %n = Gather(%s, i64{2}) %e = Add(%n, i64{1})
  %c = Slice(%t16, %n, %e, i64{0}) %cos = Concat(%c, %c) {axis=1}
  %k = MatMul(%x, %w16) %k4 = Reshape(%k, i64[4]{1, 1, 2, 8}) %h = Transpose(%k4) {perm=[0, 2, 1, 3]}
  %a = Slice(%h, i64{0}, i64{4}, i64{3}) %b = Slice(%h, i64{4}, i64{8}, i64{3}) %m = Neg(%b)
  %r = Concat(%m, %a) {axis=3} %u = Mul(%h, %cos) %v = Mul(%r, %cos) %q = Add(%u, %v)
  %present = Concat(%past, %q) {axis=2}
  %i = Transpose(%present) {perm=[0, 1, 3, 2]}
  %z = MatMul(%q, %i) %p = Softmax(%z) %o = MatMul(%p, %present)
  %j = Transpose(%o) {perm=[0, 2, 1, 3]} %y = Reshape(%j, i64[3]{1, 1, 16})
}'''

    def test_a_past_of_halves_that_grows(self) -> None:
        path = self.model(self.HALVES)
        session = hone.Session(path, threads=1)
        x, past = np.linspace(-1, 1, 16, dtype="e").reshape(1, 1, 16), np.zeros((1, 2, 2, 8), "e")
        for _ in range(16):
            got = session.run({"x": x, "past": past})
            want = hone.Session(path, threads=1).run({"x": x, "past": past})
            for name in want:
                np.testing.assert_allclose(got[name], want[name], rtol=1e-3, atol=1e-3)
            x, past = got["y"], got["present"]
        self.assertLess(len(session._plans), 6)

    def test_a_past_that_grows_in_threads(self) -> None:
        session, failed = hone.Session(self.model(self.GROWS), threads=1), []

        def grow(first: int) -> None:
            for n in range(first, first + 30):
                x, past = np.full((1, 1, 8), n / 50, "f"), np.full((1, n, 8), 1 / n, "f")
                got = session.run({"x": x, "past": past})
                if got["present"].shape != (1, n + 1, 8) or got["half"] != (n + 1) / 2 or not (got["present"][:, :n] == past).all():
                    failed.append(n)
        threads = [threading.Thread(target=grow, args=(first,)) for first in (2, 5, 30)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failed, [])

    def test_given_shapes(self) -> None:
        path = self.model("opset 20\ngraph g(%x: f32[nx3]) -> (%y) { %y = Neg(%x) }")
        session = hone.Session(path, shapes={"x": (2, 3)})
        self.assertEqual(session.precision, "f32")
        self.assertEqual(session.run({"x": np.ones((2, 3), "f")})["y"].shape, (2, 3))
        self.assertEqual(session.run({"x": np.ones((4, 3), "f")})["y"].shape, (4, 3))
        self.assertEqual(hone.Session(path, shapes={"x": np.array([2, 3])}).precision, "f32")
        for shapes, says in (({"q": (2, 3)}, "shapes: the model has no input 'q' .it has x"),
                             ({"x": (2, 4)}, r"shapes\['x'\]: the model fixes another shape; expected f32\[nx3\], got 2x4"),
                             ({"x": (2, 3, 1)}, "fixes another shape"), ({"x": ()}, "got no dimensions"),
                             ({"x": "1x3"}, r"shapes\['x'\]: wrong type; expected a tuple of numbers, got '1x3'"),
                             ({"x": 3}, "expected a tuple of numbers, got 3"),
                             ({"x": np.array(3)}, r"expected a tuple of numbers, got array\(3\)"),
                             ({"x": {2, 3}}, "expected a tuple of numbers, got {2, 3}"),
                             ({"x": (1.5, 3)}, "expected a whole number, 0 or more, got 1.5"),
                             ({"x": (-1, 3)}, "expected a whole number, 0 or more, got -1"),
                             ({"x": (None, 3)}, "got None"), ({"x": (2**64, 3)}, "wrong value"),
                             ([("x", (1, 3))], "shapes: wrong type; expected a dict .*, got list")):
            with self.subTest(says), self.assertRaisesRegex(hone.UsageError, says):
                hone.Session(path, shapes=shapes)

    def test_given_shapes_of_other_inputs(self) -> None:
        path = self.model("opset 20\ngraph g(%x: f32[2x3]) -> (%y) { %y = Neg(%x) }")
        saved = os.path.join(self.folder, "m.hone")
        hone.optimize(path, saved, threads=1)
        for model in (path, saved):
            with self.assertRaisesRegex(hone.UsageError, r"shapes\['x'\]: the model fixes .*f32\[2x3\], got 4x3"):
                hone.Session(model, shapes={"x": (4, 3)})
            self.assertEqual(hone.Session(model, shapes={"x": (2, 3)}).precision, "f32")
        with self.assertRaisesRegex(hone.UsageError, r"shapes\['s'\]: this input \(seq f32\) has no shape"):
            hone.Session(self.model("opset 18\ngraph g(%s: seq f32) -> (%n) { %n = SequenceLength(%s) }"),
                         shapes={"s": (1,)})
        anything = self.model("opset 20\ngraph g(%x: f32) -> (%y) { %y = Neg(%x) }")
        with self.assertRaisesRegex(hone.UsageError, "at most 8, got 9"):
            hone.Session(anything, shapes={"x": (1,) * 9})

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


class Ends(ModelTest):
    def setUp(self) -> None:
        super().setUp()
        self.path = self.model("opset 20\ngraph g(%x: f32[nx3], %c: f32[]) -> (%y) { %y = Mul(%x, %c) }")
        self.given = {"x": np.ones((2, 3), "f"), "c": np.float32(2)}

    def check_closed(self, session: hone.Session) -> None:
        with self.assertRaisesRegex(hone.UsageError, "^the session is closed$"):
            session.run(self.given)

    def test_with(self) -> None:
        with hone.Session(self.path) as session:
            y = session.run(self.given, copy=False)["y"]
        self.check_closed(session)
        session.close()
        gc.collect()
        np.testing.assert_array_equal(y, np.full((2, 3), 2))
        self.assertEqual((session.inputs[0].name, session.precision), ("x", ""))
        with self.assertRaises(KeyError), hone.Session(self.path) as session:
            raise KeyError
        self.check_closed(session)

    def test_saved_plans(self) -> None:
        saved = os.path.join(self.folder, "m.hone")
        hone.optimize(self.path, saved, threads=1, shape={"x": (2, 3)})
        session = hone.Session(saved)
        y = session.run(self.given, copy=False)["y"]
        session.close()
        self.check_closed(session)
        np.testing.assert_array_equal(y, np.full((2, 3), 2))

    def test_nothing_is_left(self) -> None:
        session = hone.Session(self.path)
        y = session.run(self.given, copy=False)["y"]
        handles = [weakref.ref(h) for h in (session._engine, session._model)]
        session.close()
        self.assertEqual([h() is None for h in handles], [False, False]) # y is theirs
        del y
        self.assertEqual([h() for h in handles], [None, None])

    def test_close_while_it_runs(self) -> None:
        path = self.model("opset 20\ngraph g(%x: f32[nx64]) -> (%y) { %m = Gemm(%x, %x) {transB=1}\n"
                          "%y = MatMul(%m, %x) }", "g.onnx")
        x = np.random.default_rng(5).integers(-2, 3, (64, 64)).astype("f")
        want, wrong, ended = x @ x.T @ x, [], []
        for _ in range(20):
            session, begun = hone.Session(path, threads=1), threading.Event()

            def work() -> None:
                try:
                    while True:
                        if not (session.run({"x": x})["y"] == want).all():
                            wrong.append(1)
                        begun.set()
                except hone.UsageError as e:
                    ended.append(str(e))
                finally:
                    begun.set()

            workers = [threading.Thread(target=work) for _ in range(3)]
            for t in workers:
                t.start()
            begun.wait()
            session.close()
            for t in workers:
                t.join()
        self.assertEqual((wrong, set(ended), len(ended)), ([], {"the session is closed"}, 60))

    def test_repr(self) -> None:
        session = hone.Session(self.path)
        self.assertEqual(repr(session), f"<hone.Session {self.path!r} on cpu: (x: f32[nx3], c: f32[]) -> (y: f32[nx3])>")
        session.close()
        self.assertIn("on cpu, closed: (x: ", repr(session))
        with open(self.path, "rb") as f:
            data = f.read()
        self.assertIn(f"'{len(data)} bytes'", repr(hone.Session(data)))

    def test_no_copies(self) -> None:
        session = hone.Session(self.path)
        for make in (pickle.dumps, copy.copy, copy.deepcopy):
            with self.assertRaisesRegex(TypeError, "a hone.Session is neither pickled nor copied"):
                make(session)


class Mistakes(ModelTest):
    def test_inputs(self) -> None:
        session = hone.Session(self.model("opset 20\ngraph g(%x: f32[2x3]) -> (%y) { %y = Neg(%x) }"))
        x = np.ones((2, 3), "f")
        for given, says in (({}, "no value for input 'x'"), ({"x": x, "q": x}, "no input 'q' .it has x"),
                            ({"x": x.astype("d")}, r"^x: wrong type; expected float32, got float64 \(.astype\('float32'\) "
                                                   r"converts it\)$"),
                            ({"x": x.tolist()}, r"got float64 \(numpy.array\(value, 'float32'\) makes one\)$"),
                            ({"x": Dlpack(x.astype("d"))}, r"got float64 \(numpy.array\("),
                            ({"x": x[0]}, r"x: wrong shape; expected f32\[2x3\], got 3"),
                            ({"x": 1.0}, r"x: wrong shape; expected f32\[2x3\], got no dimensions"),
                            ({"x": np.ones((2, 4), "f")}, r"x: wrong shape; expected f32\[2x3\], got 2x4"),
                            ({"x": np.ones((1,) * 9, "f")}, "x: "),
                            ({"x": x.astype("U")}, "x: wrong type; expected float32, got <U32$"),
                            ({"x": x.astype(object)}, "x: wrong type; expected float32, got object$"),
                            ({"x": None}, "x: there is no value; expected an array, got None$"),
                            ({"x": [[1.0], [1.0, 2.0]]}, "x: numpy makes no array of it"),
                            ([x], r"^inputs: wrong type; expected a dict \{input: array\}, got list \(the model has x\)$"),
                            (x, "inputs: wrong type; .*, got ndarray"), (None, "inputs: wrong type; .*, got NoneType")):
            with self.subTest(says), self.assertRaisesRegex(hone.UsageError, says):
                session.run(given)
        for text, deep in (("%x: f32", (1,) * 9), ("%x: f32, %z: f32", (2,) * 12)): # the rank is open
            session_of_any = hone.Session(self.model(f"opset 20\ngraph g({text}) -> (%y) {{ %y = Neg(%x) }}", "any.onnx"))
            given = {p.name: np.ones(deep, "f") for p in session_of_any.inputs}
            with self.assertRaisesRegex(hone.UsageError, f"^x: too many dimensions; expected at most 8, got {len(deep)}$"):
                session_of_any.run(given)
        for seconds in (-1, "x", float("nan"), float("inf"), True, None):
            with self.subTest(seconds), self.assertRaisesRegex(hone.UsageError, "max_seconds: wrong value; expected sec"):
                session.run({"x": x}, max_seconds=seconds)
        self.assertEqual(session.run({"x": x}, max_seconds=np.float32(9))["y"].shape, (2, 3))
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
        for options in ({"device": "abacus"}, {"precision": "f17"}, {"threads": -1}, {"level": 9}, {"level": -1},
                        {"device": 0}, {"device": None}, {"precision": 3}, {"threads": "2"}, {"threads": 1.5},
                        {"threads": True}, {"threads": 100000}, {"threads": None}, {"level": "x"}, {"level": False}):
            with self.subTest(options), self.assertRaisesRegex(hone.UsageError, next(iter(options))):
                hone.Session(path, **options)
        self.assertTrue(hone.Session(path, threads=np.int64(1), level=np.uint8(1)))
        anything = self.model("opset 20\ngraph g(%x: f32[n]) -> (%y) { %y = Neg(%x) }", "n.onnx") # is not planned yet
        with self.assertRaisesRegex(hone.UsageError, "precision: wrong value; expected None or one of .'f32', .*, got 'f17'"):
            hone.Session(anything, precision="f17")
        for model in (3, None, [path], np.zeros(3)):
            with self.assertRaisesRegex(hone.UsageError, "^model: wrong type; expected a path"):
                hone.Session(model)
        with self.assertRaisesRegex(hone.UsageError, "model: there is a zero byte"):
            hone.Session("a\0b.onnx")
        with open(path, "rb") as f:
            data = f.read()
        for kind in (bytearray, memoryview):
            self.assertEqual(hone.Session(kind(data)).inputs[0].name, "x")

    def test_parts(self) -> None:
        session = hone.Session(self.model("opset 20\ngraph g(%x: f32[2x3]) -> (%y) { %y = Neg(%x) }"))
        with self.assertRaises(hone.UsageError) as caught:
            session.run({"x": np.ones((2, 3))})
        e = caught.exception
        self.assertEqual((e.what, e.where, e.expected, e.got, e.hint),
                         ("wrong type", "x", "float32", "float64", ".astype('float32') converts it"))
        self.assertEqual(str(e), f"{e.where}: {e.what}; expected {e.expected}, got {e.got} ({e.hint})")
        with self.assertRaises(hone.UsageError) as caught: # the library's
            hone.Session(self.folder + "/m.onnx", device="abacus")
        self.assertEqual((e.status, e.exit_code), (caught.exception.status, caught.exception.exit_code))
        with self.assertRaises(hone.InputError) as caught: # the command's
            hone.profile(self.folder + "/none.onnx")
        e = caught.exception
        self.assertEqual((e.what, e.exit_code), (str(e), 3))
        self.assertIn("none.onnx", e.what)

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

    def test_import_takes_what_sessions_need(self) -> None:
        code = ("import ctypes, sys, typing, numpy\nbefore = set(sys.modules)\nimport hone\n"
                "print([m for m in ('json', 'pathlib', 'shutil', 'subprocess') if m in sys.modules and m not in before])")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), "[]")

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
        for call in (lambda: hone.profile(b"m.onnx"), lambda: hone.optimize(path, 3), lambda: hone.verify(path, [other])):
            with self.assertRaisesRegex(hone.UsageError, "expected a path, got (bytes|int|list)$"):
                call()
        with self.assertRaisesRegex(hone.UsageError, "a zero byte"):
            hone.profile("a\0b")


if __name__ == "__main__":
    unittest.main()
