"""Networks of kinds that the other lists have none of: experts, recurrences of today, scientific, sound, series, points.

    python3 bench/peers/exported_further.py FOLDER [NAME...]

Random weights, small configurations. Needs `pip install torch==2.15.0 torchvision==0.29.2 transformers==5.24.0
diffusers==0.42.1 onnx==1.23.2 onnxscript==0.7.2`; what is not installed or cannot be exported is left out with a line
that says so. Dimensions stay open where ALL says so: then NAME.shapes beside the file says the shapes of three uses, a
line each: what it is called, then what `hone --shape` is given."""
import torch
from torch import nn

import further_packages
import further_sequences
import further_spaces
from exported_kinds import Flat
from exporting import run

ALL = {**further_packages.ALL, **further_spaces.ALL, **further_sequences.ALL}


def write(path, name, make):
    model, args, options, uses = make(name)
    if isinstance(model, Flat):
        options = dict(options, input_names=model.names)
    for weight in model.parameters():  # those that begin at zero would hide what is before them
        if weight.dim() > 1 and not weight.any():
            nn.init.normal_(weight, std=0.05)
    with torch.no_grad():
        torch.onnx.export(model, args, path, dynamo=True, external_data=False, verbose=False, **options)
    if uses:
        with open(path[:-len("onnx")] + "shapes", "w") as f:
            for use, shapes in uses.items():
                f.write(" ".join([use] + shapes) + "\n")


if __name__ == "__main__":
    run(__doc__, [(ALL, lambda name: ALL[name](name))], write)
