#!/usr/bin/env python3
"""make bench-runtime: what streams, several plans, pipelines, submitted runs and new sizes cost on the processor.

Prints a line a figure: figure, bar, met or not. What is compared is measured in turn, and medians are told.
PARTS chooses among streams, pairs, submit, replan, pipeline, control. Exit code 3: something could not be run.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

PARTS = ["streams", "pairs", "submit", "replan", "pipeline", "control"]


def ask(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(3)
    return json.loads(done.stdout)


def line(what, figure, bar, met):
    print(f"{what:<84} {figure:>9}   {bar:<12} {'met' if met else 'not met'}", flush=True)


class Bench:
    def __init__(self, args, work):
        self.hone = os.path.join(args.build, "hone")
        self.tool = os.path.join(args.build, "runtime_bench")
        self.rounds, self.work = args.rounds, work
        self.seconds, self.pictures_of, self.runs = (0.01, 12, 10) if args.quick else (0.15, 600, 5000)
        self.cores = len(os.sched_getaffinity(0))
        self.net = {"mobilenetv2": os.path.join(work, "mobilenetv2.onnx")}
        small = ["--width", "0.25", "--size", "64"] if args.quick else []
        subprocess.run([self.hone, "zoo", "mobilenetv2", "-o", self.net["mobilenetv2"], *small], check=True,
                       stdout=subprocess.DEVNULL)
        face = os.path.join(args.models, "ultraface_RFB-320.onnx")
        if os.path.exists(face):
            self.net["ultraface"] = face
        else:
            print(f"SKIP: ultraface: no {face}")

    def streams(self):
        """One input for both, so that neither reads more memory than the other."""
        for name, model in self.net.items():
            got = ask(self.tool, "streams", model, 6 * self.rounds, self.seconds)
            line(f"{self.cores} streams / best single stream, {name} ({got['streams']:.0f}/s; {got['all']:.0f} on all,"
                 f" {got['one']:.0f} on one)", f"{got['ratio']:.2f}x", ">= 1.15x", got["ratio"] >= 1.15)

    def pairs(self):
        names = list(self.net.items())
        todo = [(names[0], names[0])] + ([(names[0], names[1])] if len(names) > 1 else [])
        for (a, first), (b, second) in todo:
            got = ask(self.tool, "pair", first, second, 6 * self.rounds, self.seconds)
            for how, text in (("own", "threads of their own"), ("shared", "threads shared")):
                line(f"{a} and {b} at once / in turn, {text}", f"{100 * got[how]:.1f} %", ">= 95 %",
                     got[how] >= 0.95)
            same = got["own"] / got["processes"]
            line(f"{a} and {b} in two threads / in two processes", f"{100 * same:.1f} %", ">= 95 %", same >= 0.95)

    def submit(self):
        us = ask(self.tool, "submit", max(self.rounds, 5), self.runs)["us"]
        line("submit and wait beyond run", f"{us:.2f} us", "<= 5 us", us <= 5)

    def replan(self):
        ms = statistics.median(ask(self.tool, "replan", self.net["mobilenetv2"])["ms"] for _ in range(self.rounds))
        line("mobilenetv2 planned for a new batch", f"{ms:.1f} ms", "<= 15 ms", ms <= 15)

    def pictures(self, name, width, height):
        """Fewer of large ones, but enough for some seconds."""
        folder, count = os.path.join(self.work, name), self.pictures_of * 320 // width
        if not os.path.isdir(folder):
            os.mkdir(folder)
            subprocess.run([self.tool, "pictures", folder, str(count), str(width), str(height)], check=True)
        return folder

    def flow(self, model, folder, *options):
        out = os.path.join(self.work, "results.jsonl")
        return ask(self.hone, "pipeline", model, "-i", folder, "-o", out, "--json", *options)["pipeline"]

    def pipeline(self):
        folder = self.pictures("small", 320, 240)
        runs = [self.flow(self.net["mobilenetv2"], folder) for _ in range(self.rounds)]
        reached = statistics.median(r["reached"] for r in runs)
        rate = statistics.median(r["rate"] for r in runs)
        line(f"JPEGs 320x240 through mobilenetv2, of the ceiling ({rate:.0f}/s)", f"{100 * reached:.1f} %", ">= 90 %",
             reached >= 0.9)

    def control(self):
        """The controller starts with one worker: a load lasts some seconds, so that this is a small part."""
        loads = [("mobilenetv2", "small", 320, 240), ("mobilenetv2", "large", 1280, 960)]
        if "ultraface" in self.net:
            loads.append(("ultraface", "small", 320, 240))
        for name, kind, width, height in loads:
            folder, model = self.pictures(kind, width, height), self.net[name]
            post = ["--post", "none"] if name == "ultraface" else []
            fixed = {n: [] for n in range(1, self.cores + 1) if n in (1, 2, 4) or n == self.cores}
            auto = []
            for _ in range(self.rounds):
                for n, rates in fixed.items():
                    rates.append(self.flow(model, folder, "--workers", f"pre={n},post=1", *post)["rate"])
                auto.append(self.flow(model, folder, *post)["rate"])
            best = max(fixed, key=lambda n: statistics.median(fixed[n]))
            ratio = statistics.median(a / b for a, b in zip(auto, fixed[best]))
            line(f"controller / best fixed (pre={best}), {width}x{height} through {name}", f"{100 * ratio:.1f} %",
                 ">= 90 %", ratio >= 0.9)


def processor():
    with open("/proc/cpuinfo") as f:
        for row in f:
            if row.startswith("model name"):
                return row.split(":", 1)[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--models", default="../shared/cases/models")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a small network and few runs: does it work?")
    parser.add_argument("--parts", default=" ".join(PARTS))
    args = parser.parse_args()
    parts = args.parts.split()
    if args.rounds < 1 or set(parts) - set(PARTS):
        parser.error(f"PARTS are {' '.join(PARTS)}; ROUNDS is 1 or more")
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(args, work)
        print(f"{processor()}, {bench.cores} processors")
        for part in parts:
            getattr(bench, part)()


if __name__ == "__main__":
    main()
