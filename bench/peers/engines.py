"""The engines as processes of their own, so that none sees another's memory, threads or caches."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


class Broken(Exception):
    """A process failed; the message is its own."""


def output_of(command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Broken("%s: exit %d: %s" % (os.path.basename(command[0]), done.returncode, said[-1] if said else ""))
    return done.stdout


def json_of(command, env=None):
    text = output_of(command, env)
    return json.loads(text[text.index("{"):])


def seeded(name, shape, dtype, seed=1):
    """Normal floats; integers small enough for any embedding table; masks all ones, token types all zero."""
    r = np.random.RandomState(seed)
    if dtype.startswith(("i", "u")) or dtype == "bool":
        v = np.ones(shape) if "mask" in name else np.zeros(shape) if "type" in name else r.randint(0, 100, shape)
    else:
        v = r.standard_normal(shape)
    types = {"f32": "float32", "f64": "float64", "f16": "float16", "bool": "bool"}
    return v.astype(types.get(dtype, dtype.replace("i", "int", 1).replace("u", "uint", 1)))


class Case:
    """A model file with its inputs in the form that each engine reads."""

    def __init__(self, hone, folder, label, model, shapes=()):
        self.label, self.model, self.shapes = label, model, [x for s in shapes for x in ("--shape", s)]
        self.folder = os.path.join(folder, re.sub(r"\W", "_", label))
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.facts = json_of([hone, "inspect", model, "--json", *self.shapes])
        feeds, self.inputs = {}, []
        for i, port in enumerate(self.facts["inputs"]):
            if port.get("optional"):
                continue
            v = seeded(port["name"], port["shape"], port["dtype"])
            path = os.path.join(self.folder, "in%d.npy" % i)
            np.save(path, v)
            feeds[port["name"]] = v
            self.inputs += ["--input", "%s=%s" % (port["name"], path)]
        self.npz = os.path.join(self.folder, "inputs.npz")
        np.savez(self.npz, **feeds)

    def drop(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Ort:
    name = "ORT"

    def __init__(self, env):
        self.env = env

    def command(self, case, threads):
        return [sys.executable, os.path.join(HERE, "ort_process.py"), case.model, case.npz, "--threads", str(threads)]

    def bench(self, case, threads, runs, warmup):
        r = json_of(self.command(case, threads) + ["--runs", str(runs), "--warmup", str(warmup)], self.env)
        return {"ms": r["median_ms"], "rss": r["rss_mib"], "load": r["load_ms"]}

    def outputs(self, case, threads):
        path = os.path.join(case.folder, "ort.npz")
        r = json_of(self.command(case, threads) + ["--outputs", path], self.env)
        return dict(np.load(path, allow_pickle=True)), r["median_ms"], r["version"]


class OpenVino:
    """Beside ONNX Runtime where its wheel is installed: speed alone, in the arithmetic that hone uses."""

    def __init__(self, precision, env):
        self.precision, self.env = precision, env
        self.name = "OpenVINO " + precision

    def bench(self, case, threads, runs, warmup):
        r = json_of([sys.executable, os.path.join(HERE, "openvino_process.py"), case.model, case.npz, "--threads", str(threads),
                     "--runs", str(runs), "--warmup", str(warmup), "--precision", self.precision], self.env)
        return {"ms": r["median_ms"], "version": r["version"]}


class Hone:
    def __init__(self, binary, precision):
        self.binary, self.precision = binary, precision
        self.name = "hone " + precision

    def command(self, what, case, threads):
        extra = [] if self.precision == "f32" else ["--precision", self.precision]
        return [self.binary, what, case.model, "-t", str(threads), *case.inputs, *case.shapes, *extra]

    def bench(self, case, threads, runs, warmup):
        r = json_of(self.command("bench", case, threads) + ["-n", str(runs), "-w", str(warmup), "--json"])
        return {"ms": r["latency_ms"]["median"], "rss": r["memory_peak_mb"], "load": self.load(case, threads)}

    def load(self, case, threads):
        """The whole life of `hone run`, from the start of the process: in the peer's favour. Nothing cached helps it."""
        with tempfile.TemporaryDirectory() as cache:
            start = time.perf_counter()
            output_of(self.command("run", case, threads), env=dict(os.environ, XDG_CACHE_HOME=cache))
            return (time.perf_counter() - start) * 1e3

    def outputs(self, case, threads, names):
        folder = os.path.join(case.folder, self.precision)
        output_of(self.command("run", case, threads) + ["--output-dir", folder])
        return {n: np.load("%s/%s.npy" % (folder, re.sub(r"[^A-Za-z0-9._-]", "_", n))) for n in names}


def worst_error(expected, got):
    """Largest difference of any output, relative to the range of that output's values; 1 for another text."""
    worst = 0.0
    for name, want in expected.items():
        have = got[name]
        if have.shape != want.shape:
            raise Broken("output '%s' is %s, ONNX Runtime says %s" % (name, have.shape, want.shape))
        if not want.size:
            continue
        if want.dtype == object:  # texts
            worst = max(worst, float(np.any(have.astype(str) != want.astype(str))))
            continue
        want = want.astype(np.float64)
        error = float(np.max(np.abs(have.astype(np.float64) - want))) / (float(want.max() - want.min()) or 1.0)
        worst = max(worst, error if error == error else float("inf"))
    return worst
