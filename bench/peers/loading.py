"""Process start to first output: several hones and ONNX Runtime in turn, on built-in networks and model files.

Each process runs alone. hone's time is that of the `hone run` process, nothing cached, to what it says of the first output, and
to its end, when the system has taken its memory back; ONNX Runtime's is from creating its session to the first output, without
Python and imports, and without an end. Medians of all rounds, and their ratios. Two binaries are compared as copies, because one
that the linker wrote lies in other pages than one that cp wrote, and by several of each, --copies, because copies of one file
differ by 5 % of a small model's start. On a busy machine: chrt -f 1 before it.

python bench/peers/loading.py BEFORE AFTER --models zoo:mobilenetv2,squeezenet.onnx --threads 1,2 --rounds 11

--batch 8 gives built-in networks, and model files that leave it open, that batch. --memory adds what each takes of memory at its
peak up to the first output: hone as a whole process, ONNX Runtime above interpreter and libraries. --python times whole processes
of Python instead, imports included: the package hone (python/ of this tree, with the libhone.so that lies beside each command)
and onnxruntime.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from engines import HERE, Case, Ort, json_of, output_of
from main import SHAPES, words


def lasted(command, env):
    """Milliseconds from the start of a process to its first words, and to its end. Spawned without a copy of this process's page
    tables. Who says nothing is done at its end."""
    ear, mouth = os.pipe()
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, env, file_actions=[(os.POSIX_SPAWN_DUP2, mouth, 1)])
    os.close(mouth)
    said = os.read(ear, 4096)
    spoke = time.perf_counter()
    while said and os.read(ear, 4096):
        pass
    status = os.waitpid(pid, 0)[1]
    end = time.perf_counter()
    os.close(ear)
    if status:
        raise SystemExit("loading: %s: status %d" % (" ".join(command), status))
    return ((spoke if said else end) - start) * 1e3, (end - start) * 1e3


FIRST_OUTPUT = {
    "hone": "import sys, numpy, hone; m, f, t = sys.argv[1:]; hone.Session(m, threads=int(t)).run(dict(numpy.load(f)))",
    "onnxruntime": "import sys, numpy, onnxruntime as o; m, f, t = sys.argv[1:]; s = o.SessionOptions(); "
                   "s.intra_op_num_threads = int(t); s.inter_op_num_threads = 1; s.log_severity_level = 3; "
                   "o.InferenceSession(m, s, providers=['CPUExecutionProvider']).run(None, dict(numpy.load(f)))"}


def python(package, case, threads):
    return [sys.executable, "-c", FIRST_OUTPUT[package], case.model, case.npz, threads]


def peak_of(command, env):
    """MiB at the peak of the process, by its own word."""
    said = subprocess.run([*command, "--memory"], capture_output=True, text=True, env=env, check=True).stdout
    at = re.search(r"([\d.]+) ([KMG])iB at peak", said)
    return float(at[1]) * {"K": 1 / 1024, "M": 1, "G": 1024}[at[2]]


def memory(peaks):
    most = [statistics.median(p) if p else 0 for p in peaks]
    return " %s MiB | %s |" % (", ".join("%.1f" % m for m in most), ", ".join("%.2f" % (m / (most[-1] or most[0])) for m in most[:-1]))


def shapes_of(hone, label, model, batch):
    """What is left open of a model file: as SHAPES says, and the batch."""
    known = SHAPES.get(label)
    if known:
        return [known.replace("=1x", "=%sx" % batch)]
    inputs = json_of([hone, "inspect", model, "--json"])["inputs"]
    shapes = ["%s=%s" % (i["name"], "x".join([batch] + [str(d) for d in i["shape"][1:]])) for i in inputs if i["symbols"] and i["symbols"][0]]
    return shapes if batch != "1" else []


def main():
    p = argparse.ArgumentParser(prog="loading", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("hone", nargs="+", help="commands to compare")
    p.add_argument("--models", type=words, default=["zoo:mobilenetv2", "zoo:resnet50"])
    p.add_argument("--threads", type=words, default=["1", "2"])
    p.add_argument("--rounds", type=int, default=11)
    p.add_argument("--precision", default="f32")
    p.add_argument("--no-peer", action="store_true", help="hone alone")
    p.add_argument("--batch", default="1")
    p.add_argument("--copies", type=int, default=3, help="of each command, in turn")
    p.add_argument("--memory", action="store_true")
    p.add_argument("--python", action="store_true", help="the two Python packages")
    p.add_argument("--plans", action="store_true", help="hone from saved plans")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copies = [[shutil.copy(path, os.path.join(folder, "hone%d_%d" % (i, k))) for k in range(a.copies)]
                  for i, path in enumerate(a.hone)]
        os.sync()  # else the copies are written while the first of them run
        hones = [c[0] for c in copies]
        libraries = [os.path.join(os.path.dirname(os.path.abspath(path)), "libhone.so") for path in a.hone]
        env = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
        envs = [env] * (len(hones) + 1)
        if a.python:  # bytecode is kept, as of what is installed
            package = shutil.copytree(os.path.join(HERE, "..", "..", "python"), os.path.join(folder, "python"))
            env.pop("PYTHONDONTWRITEBYTECODE", None)
            envs = [dict(env, PYTHONPATH=package, HONE_LIBRARY=library) for library in libraries] + [env]
        peer = None if a.no_peer else Ort(None)
        print("| model | threads | %s | ONNX Runtime, ms | ratios | to the end | ratios |%s" % (
            ", ".join("hone %d, ms" % i for i in range(len(hones))), " peaks | ratios |" if a.memory else ""))
        for name in a.models:
            model = name
            if name.startswith("zoo:"):
                model = os.path.join(folder, re.sub(r"\W", "_", name) + ".onnx")
                output_of([hones[0], "zoo", name[4:], "-b", a.batch, "-o", model])
            label = os.path.splitext(os.path.basename(name))[0]
            case = Case(hones[0], folder, label, model, shapes_of(hones[0], label, model, a.batch))
            for threads in a.threads:
                commands = []
                for i, hone in enumerate(hones):
                    source, shapes = model, case.shapes
                    if a.plans:
                        source, shapes = os.path.join(folder, "plan%d.hone" % i), []
                        output_of([hone, "optimize", model, *case.shapes, "-t", threads, "--precision", a.precision, "-o", source])
                    commands.append([hone, "run", source, "-t", threads, *case.inputs, *shapes] +
                                    ([] if a.plans or a.precision == "f32" else ["--precision", a.precision]))
                if a.python:
                    commands = [python("hone", case, threads)] * len(hones) + [python("onnxruntime", case, threads)]
                times, ends, peaks = ([[] for _ in range(len(hones) + 1)] for _ in range(3))
                for k in range(a.rounds):
                    turn = list(range(len(commands)))
                    for i in turn if k % 2 else turn[::-1]:
                        command = commands[i] if a.python else [copies[i][k % a.copies], *commands[i][1:]]
                        lasted(command, envs[i])  # what the host took back of memory and caches comes here
                        first, end = lasted(command, envs[i])
                        times[i].append(first)
                        ends[i].append(end)
                        if a.memory:
                            peaks[i].append(peak_of(commands[i], env))
                    if peer and not a.python:
                        said = json_of(peer.command(case, int(threads)))
                        times[-1].append(said["load_ms"])
                        peaks[-1].append(said["rss_mib"])
                middle = [statistics.median(t) if t else 0 for t in times]
                last = [statistics.median(t) for t in ends[:-1]]
                print("| %s | %s | %s | %.2f | %s | %s | %s |" % (
                    label, threads, ", ".join("%.2f (%.2f)" % (m, min(t)) for m, t in zip(middle, times[:-1])), middle[-1],
                    ", ".join("%.3f" % (m / (middle[-1] or middle[0])) for m in middle[:-1]), ", ".join("%.2f" % m for m in last),
                    ", ".join("%.3f" % (m / (middle[-1] or last[0])) for m in last)) + (memory(peaks) if a.memory else ""), flush=True)
            case.drop()


main()
