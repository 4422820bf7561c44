#!/usr/bin/env python3
"""make bench-scale: what loading and planning cost as networks grow, and what the profiler costs a run.

Networks of 100 to 10,000 nodes in four forms, each `hone run` in a process of its own: seconds from start to end, and
a node's share. Then runs with spans (`hone profile`) against runs without (`hone bench`), in turn. Medians are told.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

SIZES = [100, 300, 1000, 3000, 10000]


def residual(nodes):
    yield "graph g(%x: f32[1x8x8x8]) -> (%y) {"
    x = "x"
    for k in range(nodes // 4):
        yield f"  const %w{k}: f32[8x8x3x3] = rand({k}, -0.1, 0.1)  const %s{k}: f32[8] = full(1)  const %b{k}: f32[8] = full(0)"
        yield f"  %c{k} = Conv(%{x}, %w{k}) {{pads=[1, 1, 1, 1]}}  %n{k} = BatchNormalization(%c{k}, %s{k}, %b{k}, %b{k}, %s{k})"
        yield f"  %r{k} = Relu(%n{k})  %a{k} = Add(%r{k}, %{x})"
        x = f"a{k}"
    yield f"  %y = Identity(%{x})\n}}"


def transformer(nodes):
    yield "graph g(%x: f32[16x16]) -> (%y) {"
    x = "x"
    for k in range(nodes // 6):
        yield f"  const %w{k}: f32[16x16] = rand({k}, -0.2, 0.2)  const %b{k}: f32[16] = rand({k + 1})"
        yield f"  %m{k} = MatMul(%{x}, %w{k})  %p{k} = Add(%m{k}, %b{k})  %s{k} = Softmax(%p{k})"
        yield f"  %u{k} = Reshape(%s{k}, i64[3]{{4, 4, 16}})  %t{k} = Transpose(%u{k}) {{perm=[1, 0, 2]}}"
        yield f"  %v{k} = Reshape(%t{k}, i64[2]{{16, 16}})"
        x = f"v{k}"
    yield f"  %y = Identity(%{x})\n}}"


def branches(nodes):
    yield "opset 18\ngraph g(%x: f32[1x8x8x8]) -> (%y) {"
    x = "x"
    for k in range(nodes // 4):
        yield f"  %p{k}, %q{k} = Split(%{x}) {{axis=1, num_outputs=2}}  %r{k} = Relu(%p{k})  %s{k} = Sigmoid(%q{k})"
        yield f"  %c{k} = Concat(%r{k}, %s{k}) {{axis=1}}"
        x = f"c{k}"
    yield f"  %y = Identity(%{x})\n}}"


def readers(nodes):
    yield "graph g(%x: f32[1x8x8x8]) -> (%y) {"
    for k in range(nodes):
        yield f"  %e{k} = {'Sigmoid' if k % 2 else 'Tanh'}(%x)"
    yield f"  %y = Sum({', '.join(f'%e{k}' for k in range(nodes))})\n}}"


FORMS = [residual, transformer, branches, readers]


def seconds(command):
    start = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - start


def growth(build, work, rounds):
    print("| network | " + " | ".join(f"{n} nodes" for n in SIZES) + " | us a node, 1000 to 10,000 |")
    print("|---" * (len(SIZES) + 2) + "|")
    for form in FORMS:
        taken = []
        for n in SIZES:
            path = os.path.join(work, "m.onnx")
            subprocess.run([f"{build}/text_model", "-", path], input="\n".join(form(n)), text=True, check=True)
            taken.append(statistics.median(seconds([f"{build}/hone", "run", path]) for _ in range(rounds)))
        us = [1e6 * t / n for t, n in zip(taken, SIZES) if n >= 1000]
        print(f"| {form.__name__} | " + " | ".join(f"{t:.3f} s" for t in taken) + f" | {us[0]:.0f} to {us[-1]:.0f} |", flush=True)


def profiler(build, work, rounds):
    print("\n| network | a run in hone profile / in hone bench, medians in turn |\n|---|---|")
    for name in ["mobilenetv2", "resnet50"]:
        path = os.path.join(work, "m.onnx")
        subprocess.run([f"{build}/hone", "zoo", name, "-b", "1", "-o", path], check=True, capture_output=True)
        ratios = []
        for turn in range(2 * rounds):
            ran = {}
            for what in ["bench", "profile"] if turn % 2 else ["profile", "bench"]:
                done = subprocess.run([f"{build}/hone", what, path, "-t", "1", "-n", "300" if name == "mobilenetv2" else "60", "--json"], check=True, capture_output=True)
                said = json.loads(done.stdout)
                ran[what] = said["latency_ms"]["median"]
            ratios.append(ran["profile"] / ran["bench"])
        ratios.sort()
        print(f"| {name} | {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}) |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--rounds", type=int, default=5)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as work:
        growth(args.build, work, args.rounds)
        profiler(args.build, work, args.rounds)


main()
