"""Process start to first output: several hones and ONNX Runtime in turn, on built-in networks and model files.

Each process runs alone. hone's time is that of the whole `hone run` process, nothing cached; ONNX Runtime's is from creating its
session to the first output, without Python and imports. Medians of all rounds, and their ratios. Two binaries are compared as
copies, because one that the linker wrote lies in other pages than one that cp wrote. On a busy machine: chrt -f 1 before it.

python bench/peers/loading.py BEFORE AFTER --models zoo:mobilenetv2,squeezenet.onnx --threads 1,2 --rounds 11
"""
import argparse
import os
import re
import shutil
import statistics
import tempfile
import time

from engines import Case, Ort, json_of, output_of
from main import SHAPES, words


def lasted(command, env, quiet):
    """Milliseconds from the start of a process to its end. Spawned without a copy of this process's page tables."""
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, env, file_actions=[(os.POSIX_SPAWN_DUP2, quiet, 1)])
    status = os.waitpid(pid, 0)[1]
    took = (time.perf_counter() - start) * 1e3
    if status:
        raise SystemExit("loading: %s: status %d" % (" ".join(command), status))
    return took


def main():
    p = argparse.ArgumentParser(prog="loading", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("hone", nargs="+", help="commands to compare")
    p.add_argument("--models", type=words, default=["zoo:mobilenetv2", "zoo:resnet50"])
    p.add_argument("--threads", type=words, default=["1", "2"])
    p.add_argument("--rounds", type=int, default=11)
    p.add_argument("--precision", default="f32")
    p.add_argument("--no-peer", action="store_true", help="hone alone")
    p.add_argument("--plans", action="store_true", help="hone from saved plans")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        hones = []
        for i, path in enumerate(a.hone):
            hones.append(shutil.copy(path, os.path.join(folder, "hone%d" % i)))
        env = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
        quiet = os.open(os.devnull, os.O_WRONLY)
        peer = None if a.no_peer else Ort(None)
        print("| model | threads | %s | ONNX Runtime, ms | ratios |" % ", ".join("hone %d, ms" % i for i in range(len(hones))))
        for name in a.models:
            model = name
            if name.startswith("zoo:"):
                model = os.path.join(folder, re.sub(r"\W", "_", name) + ".onnx")
                output_of([hones[0], "zoo", name[4:], "-o", model])
            label = os.path.splitext(os.path.basename(name))[0]
            case = Case(hones[0], folder, label, model, [SHAPES[label]] if label in SHAPES else [])
            for threads in a.threads:
                commands = []
                for i, hone in enumerate(hones):
                    source, shapes = model, case.shapes
                    if a.plans:
                        source, shapes = os.path.join(folder, "plan%d.hone" % i), []
                        output_of([hone, "optimize", model, *case.shapes, "-t", threads, "--precision", a.precision, "-o", source])
                    commands.append([hone, "run", source, "-t", threads, *case.inputs, *shapes] +
                                    ([] if a.plans or a.precision == "f32" else ["--precision", a.precision]))
                times = [[] for _ in range(len(hones) + 1)]
                for k in range(a.rounds):
                    turn = list(range(len(hones)))
                    for i in turn if k % 2 else turn[::-1]:
                        lasted(commands[i], env, quiet)  # what the host took back of memory and caches comes here
                        times[i].append(lasted(commands[i], env, quiet))
                    if peer:
                        times[-1].append(json_of(peer.command(case, int(threads)))["load_ms"])
                middle = [statistics.median(t) if t else 0 for t in times]
                print("| %s | %s | %s | %.2f | %s |" % (
                    label, threads, ", ".join("%.2f (%.2f)" % (m, min(t)) for m, t in zip(middle, times[:-1])), middle[-1],
                    ", ".join("%.3f" % (m / (middle[-1] or middle[0])) for m in middle[:-1])), flush=True)
            case.drop()


main()
