"""hone against ONNX Runtime, and OpenVINO where it is installed: speed, memory, load time and answers, on built-in networks,
variants of them and other models.

Only ratios are to be quoted: the engines run alternately, one process each per round, and each round gives one ratio, because
machines are shared and their speed drifts. Answers are compared in the same run; a mismatch ends it with exit code 1."""
import argparse
import glob
import importlib.util
import os
import subprocess
import sys
import tempfile
import time

from engines import Broken, Case, Hone, OpenVino, Ort, output_of, worst_error
from floor import Roofs, floor_ms
from masked import masked
from operators import operators
from quantised import quantised
from report import Report, speed_of, statistics_of

NETWORKS = ["resnet50", "mobilenetv2", "yolov3", "bert_base"]
# Other widths and input sizes, for what was tuned to the four networks by accident.
VARIANTS = {
    "resnet50": [(0.9, 225), (1.1, 199)],
    "mobilenetv2": [(0.9, 225), (1.1, 199)],
    "yolov3": [(0.9, 352), (1.1, 288)],
    "bert_base": [(0.9, 101), (1.1, 77)],
}
# Input shapes for models that leave them open.
SHAPES = {"ch_PP-OCRv4_det_infer": "x=1x3x480x640", "ch_PP-OCRv4_rec_infer": "x=1x3x48x320",
          "ch_ppocr_mobile_v2.0_cls_infer": "x=1x3x48x192"}
# Largest error against ONNX Runtime's f32 answer, relative to the range of the output. bf16 has 8 bits of mantissa and the
# networks are up to a hundred layers deep; integer steps may round a half the other way.
TOLERANCE = {"f32": 1e-4, "bf16": 2.0 ** -5, "quantised": 1e-1}
TARGET_MS = 400  # of measuring per process


def words(text):
    return [w for w in text.replace(",", " ").split() if w]


def arguments():
    p = argparse.ArgumentParser(prog="bench-peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("hone", help="the command to measure")
    p.add_argument("--models", type=words, default=NETWORKS, help="built-in networks (all four)")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--batches", type=words, default=["1", "8"])
    p.add_argument("--threads", type=words, default=["1", "2"])
    p.add_argument("--precisions", type=words, default=["f32", "bf16"])
    p.add_argument("--parts", type=words, default=["networks", "quantised", "variants", "operators", "others"])
    p.add_argument("--operators", type=words, default=[], help="of the operators, those whose names begin so (all)")
    p.add_argument("--others", default=os.path.join(os.environ.get("HONE_SHARED", "../shared"), "cases/models"),
                   help="folder with other models")
    p.add_argument("--out", help="write the report here as well")
    p.add_argument("--work", default="build/peers", help="folder for the models")
    a = p.parse_args()
    unknown = [m for m in a.models if m not in NETWORKS]
    if unknown:
        p.error("no such network: " + ", ".join(unknown))
    a.batches, a.threads = [int(b) for b in a.batches], [int(t) for t in a.threads]
    return a


def zoo(a, name, **options):
    """The built-in network as a file, written anew when the command is newer."""
    flags = [x for k, v in options.items() for x in ("--" + k, str(v))]
    path = os.path.join(a.work, "_".join([name] + ["%s%s" % (k[0], v) for k, v in options.items()]) + ".onnx")
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(a.hone):
        output_of([a.hone, "zoo", name, "-o", path, *flags])
    return path


def understands(hone, precision):
    try:
        output_of([hone, "run", "zoo:mobilenetv2", "-b", "1", "--precision", precision])
        return True
    except Broken:
        return False


class Bench:
    def __init__(self, a, report, folder):
        self.a, self.report, self.folder = a, report, folder
        # A hone that is held to AVX2, or AVX-VNNI beside it, meets peers that are: masked.py.
        held = os.environ.get("HONE_CPU") in ("avx2", "avxvnni")
        self.peers_env = masked(os.path.join(a.work, "masked")) if held else None
        self.ort = Ort(self.peers_env)
        self.openvino = importlib.util.find_spec("openvino") is not None
        self.refused = set()
        self.wrong = 0

    def note(self, text):
        print("bench-peers: %s" % text, file=sys.stderr, flush=True)

    def answers(self, case, engines, threads):
        """Worst error of every engine; counts those beyond their tolerance."""
        expected, ms, self.report.peer_version = self.ort.outputs(case, threads)
        in_codes = any("QuantizeLinear" in n["type"] for n in case.facts["nodes"])
        errors = {}
        for e in engines:
            errors[e.name] = worst_error(expected, e.outputs(case, threads, expected))
            limit = TOLERANCE["quantised" if in_codes else e.precision]
            if not errors[e.name] <= limit:
                self.wrong += 1
                self.note("MISMATCH: %s, %s: error %.2g of the range, allowed %.2g" % (case.label, e.name, errors[e.name], limit))
        return errors, ms

    def measure(self, case, engines, threads, guess_ms):
        """{engine: [one result per round]}; who goes first alternates."""
        runs = max(3, min(100, int(TARGET_MS / guess_ms)))
        order = [self.ort, *engines]
        if self.openvino:
            order += [OpenVino(e.precision, self.peers_env) for e in engines]
        results = {e.name: [] for e in order}
        for i in range(self.a.rounds):
            for e in order if i % 2 == 0 else order[::-1]:
                if (case.label, e.name) in self.refused:
                    continue
                try:
                    results[e.name].append(e.bench(case, threads, runs, max(1, runs // 5)))
                except Broken as why:
                    if not isinstance(e, OpenVino):
                        raise
                    self.refused.add((case.label, e.name))  # a model that it does not take is no fault of hone's
                    self.note("%s, %s: %s" % (case.label, e.name, why))
        return results

    def compare(self, section, label, model, engines, threads, shapes=(), roofs=None, batch=1, precision=None):
        case = Case(self.a.hone, self.folder, label, model, shapes)
        try:
            errors, guess = self.answers(case, engines, max(threads))
            for t in threads:
                results = self.measure(case, engines, t, guess)
                for e in engines:
                    row = statistics_of(results[self.ort.name], results[e.name])
                    other = results.get("OpenVINO " + e.precision)
                    if other and len(other) == len(results[e.name]):
                        self.report.openvino_version = other[0]["version"]
                        row["openvino"] = speed_of(other, results[e.name])
                    floor = floor_ms(case.facts, roofs, t, e.precision) if roofs else None
                    self.report.add(section, dict(row, label=label, batch=batch, threads=t, precision=precision or e.precision,
                                                  error=errors[e.name], floor=floor))
                    self.note(self.report.last_line())
        except Broken as why:
            self.wrong += 1
            self.note("%s: %s" % (label, why))
        finally:
            case.drop()


def others(bench, engines):
    found = sorted(glob.glob(os.path.join(bench.a.others, "**", "*.onnx"), recursive=True))
    if not found:
        bench.report.say("others", "No models in %s: left out." % bench.a.others)
    for path in found:
        name = os.path.splitext(os.path.basename(path))[0]
        bench.compare("others", name, path, engines[:1], bench.a.threads, [SHAPES[name]] if name in SHAPES else [])


def main():
    a = arguments()
    os.makedirs(a.work, exist_ok=True)
    precisions = [p for p in a.precisions if p == "f32" or understands(a.hone, p)]
    start = time.time()
    roofs = Roofs(a.hone, a.threads)
    version = output_of([a.hone, "version"]).splitlines()[0]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    report = Report(roofs, version, commit or "unknown commit", a.rounds)
    for p in a.precisions:
        if p not in precisions:
            report.say("networks", "This hone has no `--precision %s`: left out." % p)
    with tempfile.TemporaryDirectory(dir=a.work) as folder:
        bench = Bench(a, report, folder)
        engines = [Hone(a.hone, p) for p in precisions]
        for name in a.models:
            if "networks" in a.parts:
                for b in a.batches:
                    bench.compare("networks", name, zoo(a, name, batch=b), engines, a.threads, roofs=roofs, batch=b)
            if "quantised" in a.parts:
                try:
                    label, path = quantised(a.hone, name, zoo(a, name, batch=1))
                    bench.compare("quantised", label, path, engines[:1], a.threads, precision="int8")
                except Broken as why:
                    report.say("quantised", "%s: left out: %s" % (name, why))
            if "variants" in a.parts:
                for width, size in VARIANTS[name]:
                    label = "%s x%g, %d" % (name, width, size)
                    bench.compare("variants", label, zoo(a, name, batch=1, width=width, size=size), engines, a.threads[-1:])
        if "operators" in a.parts:
            for label, path in operators(folder, a.operators):
                bench.compare("operators", label, path, engines[:1], a.threads)
        if "others" in a.parts:
            others(bench, engines)
    report.seconds = time.time() - start
    text = report.markdown()
    print(text)
    if a.out:
        gpu = ""  # what bench-gpu measured elsewhere stays
        if os.path.exists(a.out):
            gpu = "\n## NVIDIA GPU" + open(a.out).read().partition("\n## NVIDIA GPU")[2]
        with open(a.out + ".part", "w") as f:
            f.write(text + (gpu if gpu.strip() != "## NVIDIA GPU" else ""))
        os.replace(a.out + ".part", a.out)
    if bench.wrong:
        print("bench-peers: %d comparisons failed" % bench.wrong, file=sys.stderr)
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as why:
        print("bench-peers: %s" % why, file=sys.stderr)
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(130)
