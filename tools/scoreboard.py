#!/usr/bin/env python3
"""ONNX's own backend tests on hone, counted as the public scoreboard counts them. Nothing is downloaded.

usage: scoreboard.py [--device cpu|cuda] [--level N] [--at-least PERCENT] [--only GLOB] [--list]
  --list       name every test that did not pass, with the reason
  --at-least   exit code 1 when a smaller share passes
Exit code 77 (and a line) where onnx or numpy is not installed.
"""

import argparse
import collections
import fnmatch
import os
import sys
import tempfile
import unittest
import warnings

parser = argparse.ArgumentParser(add_help=True, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
parser.add_argument("--level", type=int, default=2)
parser.add_argument("--at-least", type=float, default=0)
parser.add_argument("--only", default="*")
parser.add_argument("--list", action="store_true")


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
        from hone.backend import HoneBackend

        class Leveled(HoneBackend):
            @classmethod
            def prepare(cls, model, device="CPU", **kwargs):
                return super().prepare(model, device, level=args.level)

        row = Row(hone.UnsupportedError)
        for test in leaves(tests.BackendTest(Leveled, __name__).test_suite):
            name = test.id().rsplit(".", 1)[-1]
            if name.endswith("_" + args.device) and fnmatch.fnmatch(name, args.only):
                test.run(row)
    n = {what: len(row.names[what]) for what in ("passed", "refused", "wrong", "failed", "skipped")}
    total = sum(n.values())
    if args.list:
        for what in ("wrong", "failed", "refused", "skipped"):
            for name, why in sorted(row.names[what]):
                print(f"{what:8}{name}: {why[:300]}")
    if not total:
        print("no such test")
        return 1
    print("| backend | ONNX | tests | passed | refused | wrong | failed | skipped | score |")
    print("|---|---|---|---|---|---|---|---|---|")
    print(f"| hone {hone.__version__} ({args.device}, level {args.level}) | {onnx.__version__} | {total} | {n['passed']} "
          f"| {n['refused']} | {n['wrong']} | {n['failed']} | {n['skipped']} | {100 * n['passed'] / total:.1f} % |")
    return 1 if 100 * n["passed"] < args.at_least * total else 0


if __name__ == "__main__":
    sys.exit(main())
