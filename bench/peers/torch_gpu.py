"""torch.compile beside hone on a GPU: fp16, random data and weights, as a Markdown table.

usage: torch_gpu.py [--eager] [--captured] NETWORK:BATCH...   NETWORK: resnet50, mobilenetv2, bert_base (128 tokens), or a picture
network of exported.py (torchvision, timm; random weights). --eager: a column for the network as it is, under a CUDA graph, too.
mode "max-autotune-no-cudagraphs" would take minutes a network; this is "reduce-overhead", whose CUDA graph makes small batches fair,
or with --captured the default mode under a CUDA graph of this script.
A row's time is the median of 50 runs by CUDA events after 5 to warm up, inputs in place.
"""
import statistics
import sys
import time

import torch


def network(name, batch):
    """The module and its inputs, as torchvision and transformers write them."""
    if name == "bert_base":
        from transformers import BertConfig, BertModel

        model = BertModel(BertConfig(attn_implementation="sdpa"), add_pooling_layer=False)
        ids = torch.randint(0, 30522, (batch, 128), device="cuda")
        return model.eval().cuda().half(), (ids,)
    import torchvision

    if name not in ("resnet50", "mobilenetv2"):
        return exported_network(name, batch)
    make = {"resnet50": torchvision.models.resnet50, "mobilenetv2": torchvision.models.mobilenet_v2}[name]
    image = torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.half)
    return (make().eval().cuda().half().to(memory_format=torch.channels_last),
            (image.to(memory_format=torch.channels_last),))


def exported_network(name, batch):
    """One of exported.py's, by its own package, as its users would run it."""
    import exported

    if name in exported.TIMM:
        import timm

        model = timm.create_model(name, pretrained=False)
        shape = model.default_cfg["input_size"]
    else:
        import torchvision

        heads = any(h in name for h in ("deeplab", "fcn", "lraspp"))
        options = dict(weights=None, weights_backbone=None) if heads else {}
        if name in ("inception_v3", "googlenet"):
            options = dict(init_weights=False, aux_logits=False, transform_input=False)
        model = torchvision.models.get_model_builder(name)(**options)
        shape = exported.SIZES.get(name, (3, 224, 224))
    last = torch.channels_last_3d if len(shape) == 4 else torch.channels_last
    x = torch.randn(batch, *shape, device="cuda", dtype=torch.half).to(memory_format=last)
    return model.eval().cuda().half().to(memory_format=last), (x,)


def captured(model, inputs):
    """Replays of the network as it is given."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(*inputs)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(*inputs)
    return graph.replay


def median_ms(call):
    for _ in range(5):
        call()
    times = []
    for _ in range(50):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def main():
    torch.backends.cudnn.benchmark = True
    eager, own_graph = "--eager" in sys.argv, "--captured" in sys.argv
    mode = "default" if own_graph else "reduce-overhead"
    print(f"\nPyTorch {torch.__version__}, torch.compile(mode=\"{mode}\"), fp16:\n")
    print("| network | batch | ms | a second | compiling s |" + (" as it is, ms |" if eager else ""))
    print("|---|---|---|---|---|" + ("---|" if eager else ""), flush=True)
    for word in (w for w in sys.argv[1:] if not w.startswith("--")):
        name, batch = word.split(":")
        torch._dynamo.reset()
        with torch.inference_mode():
            model, inputs = network(name, int(batch))
            plain = median_ms(captured(model, inputs)) if eager else 0
            compiled = torch.compile(model, mode=mode, dynamic=False)
            begun = time.time()
            compiled(*inputs)
            torch.cuda.synchronize()
            compiling = time.time() - begun
            ms = median_ms(captured(compiled, inputs) if own_graph else lambda: compiled(*inputs))
        row = f"| {name} | {batch} | {ms:.3f} | {int(batch) / ms * 1e3:.0f} | {compiling:.0f} |"
        print(row + (f" {plain:.3f} |" if eager else ""), flush=True)


main()
