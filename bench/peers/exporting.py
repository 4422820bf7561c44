"""What the scripts that export networks share: their arguments, and a line for each network."""
import os
import sys
import warnings

import torch


def tensors(out):
    """All tensors of what a model returned, in one row."""
    if torch.is_tensor(out):
        return [out]
    if isinstance(out, dict):
        out = list(out.values())
    return sum((tensors(o) for o in out), []) if isinstance(out, (list, tuple)) else []


def export(folder, name, write):
    """write(path) makes the file. What the exporter cannot do is left out, with a line that says so."""
    path = os.path.join(folder, name + ".onnx")
    torch.manual_seed(7)
    try:
        write(path)
    except Exception as why:
        if os.path.exists(path):
            os.remove(path)
        print("%s: left out: %s: %s" % (name, type(why).__name__, " ".join(str(why).split())[-300:]), flush=True)
        return
    print("%s: %.0f MB" % (name, os.path.getsize(path) / 1e6), flush=True)


def shape_text(name, dims):
    return "%s=%s" % (name, "x".join(map(str, dims)))


def plain(module, *args, open=None):
    """A network without options and its inputs; open: for each input the axes whose size stays open."""
    def make(name):
        if not open:
            return module().eval(), args, {}, {}
        names, uses = ["in%d" % i for i in range(len(args))], {}
        for use, size in (("same", lambda n: n), ("more", lambda n: n + 3 * (n // 5 + 1)), ("half", lambda n: max(1, n // 2))):
            uses[use] = [shape_text(n, [size(d) if i in axes else d for i, d in enumerate(x.shape)])
                         for n, x, axes in zip(names, args, open)]
        sizes = tuple({d: torch.export.Dim.DYNAMIC for d in axes} for axes in open)
        return module().eval(), args, dict(dynamic_shapes=sizes, input_names=names), uses
    return make


def run(doc, families, write):
    """FOLDER [NAME...]: write(path, name, make) for the networks of `families`, pairs of names and what makes them."""
    if len(sys.argv) < 2:
        sys.exit(doc)
    folder, wanted = sys.argv[1], sys.argv[2:]
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    os.makedirs(folder, exist_ok=True)
    unknown = [n for n in wanted if not any(n in names for names, _ in families)]
    if unknown:
        sys.exit("%s: no such network: %s" % (os.path.basename(sys.argv[0]), ", ".join(unknown)))
    for names, make in families:
        for name in names:
            if not wanted or name in wanted:
                export(folder, name, lambda path, name=name, make=make: write(path, name, make))
