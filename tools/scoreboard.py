#!/usr/bin/env python3
"""ONNX's own backend tests on hone, counted as the public scoreboard counts them. Nothing is downloaded.

usage: scoreboard.py [--device cpu|cuda] [--level N[,N...]] [--written] [--at-least PERCENT] [--only GLOB] [--list]
  --level      0,2: a row for each; 2 where it is left out
  --written    a row more for each level: hone rewrites the model (hone optimize -o), and runs the file that it wrote
  --list       name every test that did not pass, with the reason
  --at-least   exit code 1 when a smaller share passes
Exit code 77 (and a line) where onnx or numpy is not installed.
"""

import argparse
import collections
import ctypes
import fnmatch
import os
import sys
import tempfile
import unittest
import warnings

parser = argparse.ArgumentParser(add_help=True, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
parser.add_argument("--level", default="2")
parser.add_argument("--written", action="store_true")
parser.add_argument("--at-least", type=float, default=0)
parser.add_argument("--only", default="*")
parser.add_argument("--list", action="store_true")


# What is drawn at random has nothing to compare with: the expected values are one draw of another generator.
RANDOM = ("test_bernoulli*",)


def load(own):
    """The tests' package, whose real networks are written into a folder of our own."""
    os.environ["ONNX_HOME"] = own
    warnings.simplefilter("ignore")
    import onnx.backend.test
    return onnx.backend.test


class Row(unittest.TestResult):
    """What became of each test."""

    def __init__(self, refusal):
        super().__init__()
        self.refusal = refusal
        self.names = collections.defaultdict(list)

    def put(self, what, test, why=""):
        name = test.id().rsplit(".", 1)[-1]
        self.names[what].append((name, str(why).strip().split("\n")[0]))

    def addSuccess(self, test):
        self.put("passed", test)

    def addFailure(self, test, err):
        if any(fnmatch.fnmatch(test.id().rsplit(".", 1)[-1], glob) for glob in RANDOM):
            self.put("random", test, "another draw than the expected one")
            return
        lines = [l for l in str(err[1]).split("\n") if l.strip()]
        self.put("wrong", test, " | ".join(lines[:4]))

    def addError(self, test, err):
        self.put("refused" if isinstance(err[1], self.refusal) else "failed", test, f"{err[0].__name__}: {err[1]}")

    def addSkip(self, test, reason):
        self.put("skipped", test, reason)


def leaves(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from leaves(test)
        else:
            yield test


def written(model, level, folder):
    """The model as hone writes it, rewritten by the passes of a level."""
    from hone import _library as lib
    from hone._library import library
    from hone.errors import check

    class Options(ctypes.Structure):
        _fields_ = [("level", ctypes.c_int), ("verify_passes", ctypes.c_bool), ("passes", ctypes.c_char_p),
                    ("max_seconds", ctypes.c_double)]

    path, error = os.path.join(folder, "written.onnx"), lib.Error()
    read, made = ctypes.c_void_p(), ctypes.c_void_p()
    try:
        check(library.hone_model_load_memory(model, len(model), None, ctypes.byref(read), ctypes.byref(error)), error)
        check(library.hone_model_optimize(read, ctypes.byref(Options(level=level)), ctypes.byref(made), None,
                                          ctypes.byref(error)), error)
        check(library.hone_model_save(made, path.encode(), ctypes.byref(error)), error)
        with open(path, "rb") as file:
            return file.read()
    finally:
        library.hone_model_release(made)
        library.hone_model_release(read)


def backend_of(level, through_file, folder):
    from hone.backend import HoneBackend

    class Leveled(HoneBackend):
        @classmethod
        def prepare(cls, model, device="CPU", **kwargs):
            if through_file:
                data = model if isinstance(model, bytes) else model.SerializeToString()
                model = written(data, level, folder)
            return super().prepare(model, device, level=level)

    return Leveled


def report(row, args, what, version):
    """Prints a row; the share that passed in percent, None where there was no test."""
    import hone

    kinds = ("passed", "refused", "wrong", "failed", "random", "skipped")
    n = {kind: len(row.names[kind]) for kind in kinds}
    total = sum(n.values())
    if args.list:
        for kind in kinds[1:]:
            for name, why in sorted(row.names[kind]):
                print(f"{kind:8}{name}: {why[:300]}")
    if not total:
        return None
    score = 100 * n["passed"] / total
    print(f"| hone {hone.__version__} ({args.device}, {what}) | {version} | {total} "
          + "".join(f"| {n[kind]} " for kind in kinds) + f"| {score:.1f} % |", flush=True)
    return score


def main():
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        try:
            tests = load(own)
        except ImportError as e:
            print(f"SKIP: {e} (HONE_PYTHON names a Python with onnx)")
            return 77
        import onnx
        import hone

        print("| backend | ONNX | tests | passed | refused | wrong | failed | random | skipped | score |")
        print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
        scores = []
        for level in (int(l) for l in args.level.split(",")):
            for through_file in (False, True) if args.written else (False,):
                row = Row(hone.UnsupportedError)
                backend = backend_of(level, through_file, own)
                for test in leaves(tests.BackendTest(backend, __name__).test_suite):
                    name = test.id().rsplit(".", 1)[-1]
                    if name.endswith("_" + args.device) and fnmatch.fnmatch(name, args.only):
                        test.run(row)
                scores.append(report(row, args, f"level {level}" + (", written" if through_file else ""),
                                     onnx.__version__))
    if None in scores:
        print("no such test")
        return 1
    return 1 if min(scores) < args.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
