"""torch.compile beside hone on a GPU: fp16, random data and weights, as a Markdown table.

usage: torch_gpu.py NETWORK:BATCH...   NETWORK: resnet50, mobilenetv2, bert_base (128 tokens)
mode "max-autotune-no-cudagraphs" would take minutes a network; this is "reduce-overhead", whose CUDA graph makes small batches fair.
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

    make = {"resnet50": torchvision.models.resnet50, "mobilenetv2": torchvision.models.mobilenet_v2}[name]
    image = torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.half)
    return (make().eval().cuda().half().to(memory_format=torch.channels_last),
            (image.to(memory_format=torch.channels_last),))


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
    print(f"\nPyTorch {torch.__version__}, torch.compile(mode=\"reduce-overhead\"), fp16:\n")
    print("| network | batch | ms | a second | compiling s |\n|---|---|---|---|---|", flush=True)
    for word in sys.argv[1:]:
        name, batch = word.split(":")
        torch._dynamo.reset()
        with torch.inference_mode():
            model, inputs = network(name, int(batch))
            compiled = torch.compile(model, mode="reduce-overhead", dynamic=False)
            begun = time.time()
            compiled(*inputs)
            torch.cuda.synchronize()
            compiling = time.time() - begun
            ms = median_ms(lambda: compiled(*inputs))
        print(f"| {name} | {batch} | {ms:.3f} | {int(batch) / ms * 1e3:.0f} | {compiling:.0f} |", flush=True)


main()
