"""Peers on a processor without AVX-512 and AMX, and without AVX-VNNI unless HONE_CPU=avxvnni, where there is none: copies of their wheels in which each CPUID
and XGETBV instruction traps, and a library that answers the trap with those bits hidden (masked_cpu.c). So ONNX Runtime,
which has no switch for it, takes the kernels that it would take on such a processor."""
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ["onnxruntime", "openvino"]
TRAPS = {b"\x0f\xa2": b"\x0f\x0b", b"\x0f\x01\xd0": b"\x0f\xb9\xd0"}  # cpuid: ud2; xgetbv: ud1


def sections(path):
    """(address, offset in the file, size) of the parts with code."""
    said = subprocess.run(["objdump", "-h", "-w", path], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        w = line.split()
        if len(w) > 6 and w[0].isdigit() and "CODE" in line:
            yield int(w[3], 16), int(w[5], 16), int(w[2], 16)


def set_traps(path):
    """The number of instructions that were replaced."""
    code, n = list(sections(path)), 0
    asm = subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, text=True)
    found = [int(m[1], 16) for m in (re.match(r"\s*([0-9a-f]+):\s+(?:cpuid|xgetbv)\b", line) for line in asm.stdout) if m]
    if asm.wait():
        raise RuntimeError("objdump cannot read %s" % path)
    if not found:
        return 0
    with open(path, "r+b") as f:
        for address in found:
            start, offset, _ = next(c for c in code if c[0] <= address < c[0] + c[2])
            f.seek(address - start + offset)
            have = f.read(3)
            old = next(o for o in TRAPS if have.startswith(o))
            f.seek(address - start + offset)
            f.write(TRAPS[old])
            n += 1
    return n


def masked(folder):
    """The environment of a peer's process; makes the copies in `folder` where those of the installed versions are not there."""
    for tool in ("cc", "objdump"):
        if not shutil.which(tool):
            sys.exit("bench-peers: HONE_CPU=avx2 and avxvnni mask the peers, too, which takes a C compiler and binutils: %s is missing" % tool)
    present = [p for p in PACKAGES if importlib.util.find_spec(p)]
    folder = os.path.abspath(os.path.join(folder, "-".join(p + importlib.metadata.version(p) for p in present)))
    os.makedirs(folder, exist_ok=True)
    library = os.path.join(folder, "masked_cpu.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "masked_cpu.c")], check=True)
    for package in present:
        copy = os.path.join(folder, package)
        if os.path.isdir(copy):
            continue
        part = copy + ".part"
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(os.path.dirname(importlib.util.find_spec(package).origin), part)
        libraries = [os.path.join(d, f) for d, _, files in os.walk(part) for f in files if re.search(r"\.so(\.|$)", f)]
        if not sum(set_traps(p) for p in libraries):
            raise RuntimeError("%s has no CPUID instruction: it cannot be masked" % package)
        os.rename(part, copy)
    return dict(os.environ, LD_PRELOAD=library, PYTHONPATH=folder)
