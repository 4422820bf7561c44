"""Profiles made by varying the real ones of a folder (cases/profiles), each with what an expert names first.

The expectations were written down before any rule saw the variants. The first finding of `hone diagnose` must be the
expert's in nine of ten; every variant is listed. usage: variants.py HONE PROFILES [VARIANT...]; KEEP=FOLDER keeps what
a variant consists of.
"""
import copy
import csv
import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HONE, PROFILES = os.path.abspath(sys.argv[1]), sys.argv[2]
AGREE = 0.9
STEPS = 4


class Folder:
    """Where one variant's files are written."""

    def __init__(self, path):
        self.path, self.files = path, []

    def name(self, name):
        self.files.append(os.path.join(self.path, name))
        return self.files[-1]

    def json(self, name, value):
        with open(self.name(name), "w", encoding="utf-8") as out:
            json.dump(value, out)


def source(name):
    return os.path.join(PROFILES, name)


def load(name):
    opener = gzip.open if name.endswith(".gz") else open
    with opener(source(name), "rt", encoding="utf-8-sig") as file:
        return json.load(file)


# ---- trtexec: times per layer, the layers themselves, the runs


def trtexec(folder, net, scale=lambda name, layer: 1, graph=True, times=None, kinds=None):
    """scale: how many times as long a layer takes; times: h2d and d2h in ms of every run; kinds: layers are renamed."""
    rows = load(f"tensorrt/{net}.profile.json")
    layers = load(f"tensorrt/{net}.graph.json")
    described = {layer["Name"]: layer for layer in layers["Layers"]}
    for row in rows[1:]:
        by = scale(row["name"], described.get(row["name"], {}))
        for key in ("timeMs", "averageMs", "medianMs"):
            row[key] = max(row[key], 0.001) * by if by != 1 else row[key]
    total = sum(row["averageMs"] for row in rows[1:])
    for row in rows[1:]:
        row["percentage"] = 100 * row["averageMs"] / total
    folder.json("profile.json", rows)
    if kinds:
        for layer in layers["Layers"]:
            kinds(layer)
    if graph:
        folder.json("graph.json", layers)
    if times:
        runs, t = [], 0.0
        for i in range(200):
            h2d, d2h = times
            compute = total * (1 + 0.001 * (i % 5))
            runs.append({"startEnqMs": t, "endEnqMs": t + 0.02, "startH2dMs": t, "endH2dMs": t + h2d,
                         "startComputeMs": t + h2d, "endComputeMs": t + h2d + compute, "startD2hMs": t + h2d + compute,
                         "endD2hMs": t + h2d + compute + d2h, "h2dMs": h2d, "computeMs": compute, "d2hMs": d2h,
                         "latencyMs": h2d + compute + d2h})
            t += h2d + compute + d2h
        folder.json("times.json", runs)


RESNET, QAT = "resnet18_A100_fp32", "mobilenet.qat"


def is_reformat(name):
    return name.startswith("Reformatting")


def is_depthwise(layer):
    return layer.get("Groups", 1) > 1


def is_product(name):
    return "Conv_" in name or "Gemm_" in name


def half(layer):
    for tensor in layer["Inputs"] + layer["Outputs"]:
        tensor["Format/Datatype"] = tensor["Format/Datatype"].replace("FP32", "FP16")
    if "Weights" in layer:
        layer["Weights"]["Type"] = "Half"


def trt_resnet(folder):
    trtexec(folder, RESNET)


def trt_no_graph(folder):
    trtexec(folder, RESNET, lambda n, _: 1.5 if "Conv_" in n else 1, graph=False)


def trt_reformats(folder):
    trtexec(folder, RESNET, lambda n, _: (12 if "MaxPool" in n else 200) if is_reformat(n) else 1, kinds=half)


def trt_h2d(folder):
    trtexec(folder, RESNET, times=(1.6, 0.03))


def trt_d2h(folder):
    trtexec(folder, RESNET, times=(0.05, 1.5))


def trt_pooling(folder):
    trtexec(folder, RESNET, lambda n, _: 40 if "MaxPool" in n and not is_reformat(n) else 1, kinds=half)


def trt_half(folder):
    trtexec(folder, RESNET, lambda n, _: 0 if is_reformat(n) else 0.5, kinds=half)


def trt_gemm(folder):
    trtexec(folder, RESNET, lambda n, _: 150 if n.startswith("Gemm") else 1, graph=False)


def qat_quantise(folder):
    trtexec(folder, QAT, lambda n, _: 15 if n.startswith("QuantizeLinear") else 4)


def qat_bare(folder):
    trtexec(folder, QAT, lambda n, _: 15 if n.startswith("QuantizeLinear") else 4, graph=False)


def qat_depthwise(folder):
    trtexec(folder, QAT, lambda n, layer: 60 if is_depthwise(layer) else 4 if is_product(n) else 0)


def qat_tiny(folder):
    trtexec(folder, QAT, lambda n, _: 0.5 if is_product(n) else 0.1)


# ---- ONNX Runtime: one event an operator


def onnxruntime(folder, change=lambda run, event: None, name="ort1.30_mobilenetv2_qdq_all.json", gap=3, runs=(0, 2, 0, 2)):
    """Runs 0 and 2 of the file (1 was disturbed), laid out anew with equal gaps; change edits an operator's event, and
    may return events that follow it."""
    events = load("onnxruntime/" + name)
    nodes = [e for e in events if e["cat"] == "Node" and e["name"].endswith("_kernel_time")]
    count = sum(e["name"] == "model_run" for e in events)
    size = len(nodes) // count
    out, t = [e for e in events if e["name"] == "session_initialization"], 100000
    for number, run in enumerate(runs):
        start, t = t, t + 20
        for event in nodes[run * size:(run + 1) * size]:
            event = copy.deepcopy(event)
            for one in [event] + (change(number, event) or []):
                one["dur"] = max(1, round(one["dur"]))
                one["ts"], t = t, t + one["dur"] + gap
                out.append(one)
        for whole in ("SequentialExecutor::Execute", "model_run"):
            out.append({"cat": "Session", "pid": nodes[0]["pid"], "tid": nodes[0]["tid"], "dur": t - start, "ts": start,
                        "ph": "X", "name": whole, "args": {}})
        t += 200
    folder.json("onnxruntime.json", out)


def scaled(**by):
    def change(_run, event):
        event["dur"] *= by.get(event["args"]["op_name"], 1)
    return change


def ort_disturbed(folder):
    folder.json("onnxruntime.json", load("onnxruntime/ort1.30_mobilenetv2_qdq_all.json"))


def ort_quantise(folder):
    onnxruntime(folder, scaled(QuantizeLinear=12, DequantizeLinear=12))


def ort_transpose(folder):
    onnxruntime(folder, scaled(Transpose=40))


def ort_gaps(folder):
    onnxruntime(folder, scaled(), gap=40)


def ort_post(folder):
    def change(_run, event):
        if event["name"].startswith("output_MatMul_Gemm_104_MatMul_Dequantize"):
            event["args"]["op_name"], event["dur"] = "NonMaxSuppression", 9000
            event["name"] = "nms_kernel_time"
    onnxruntime(folder, change)


def ort_one_slow(folder):
    def change(_run, event):
        if event["name"].startswith("Conv_37_"):
            event["dur"] *= 400
    onnxruntime(folder, change)


def ort_fallback(folder):
    def change(_run, event):
        event["args"]["provider"] = "CUDAExecutionProvider"
        if event["args"]["op_name"] != "Add":
            return None
        event["args"]["provider"], event["dur"] = "CPUExecutionProvider", event["dur"] * 15
        copies = []
        for kind in ("MemcpyToHost", "MemcpyFromHost"):
            one = copy.deepcopy(event)
            one["name"], one["dur"] = f"{kind}_{event['name']}", 90
            one["args"].update(op_name=kind, provider="CUDAExecutionProvider")
            copies.append(one)
        return copies
    onnxruntime(folder, change)


def ort_diverse(folder):
    names = {"QuantizeLinear": ("Gather", 8), "DequantizeLinear": ("Slice", 8), "Add": ("TopK", 8), "Transpose": ("Resize", 10)}

    def change(_run, event):
        kind = event["args"]["op_name"]
        if kind in names:
            event["args"]["op_name"], by = names[kind]
            event["dur"] *= by
        elif kind == "QLinearConv":
            event["args"]["op_name"] = "FusedConv"
            event["dur"] *= 0.3
    onnxruntime(folder, change)


def ort_shapes(folder):
    def change(run, event):
        for key in ("input_type_shape", "output_type_shape"):
            for tensor in event["args"][key]:
                for dims in tensor.values():
                    if len(dims) == 4:
                        dims[2] += 8 * run
        event["dur"] *= 1 + 0.3 * run
    onnxruntime(folder, change)


def ort_old_unfused(folder):
    def change(_run, event):
        event["dur"] *= {"Conv": 0.5, "Add": 20, "Relu": 25}.get(event["args"]["op_name"], 1)
    onnxruntime(folder, change, "ort_profile_2019-06-28.json", 3, (0, 0, 0))


def ort_old_gaps(folder):
    def change(_run, event):
        event["dur"] = min(event["dur"], 110)
    onnxruntime(folder, change, "ort_profile_2019-06-28.json", 45, (0, 0, 0))


# ---- PyTorch: the second measured forward pass of the AlexNet trace, kernels one behind the other


FIRST_KERNEL, LAST_KERNEL = 1695835585836665, 1695835585863852


def kineto(folder, change=lambda event: None, before=(), after=(), gap=1, marked=True, wait=0, launch=10):
    """before, after: (category, name, us, arguments) of every step, on the device or the host ("host"); wait: the host
    synchronises after each kernel for so long."""
    trace = load("pytorch/kineto_alexnet.json.gz")
    kernels = sorted((e for e in trace["traceEvents"]
                      if e.get("cat") == "kernel" and FIRST_KERNEL <= e["ts"] <= LAST_KERNEL), key=lambda e: e["ts"])
    out = [e for e in trace["traceEvents"] if e.get("ph") == "M"]
    host = {"ph": "X", "pid": 2869224, "tid": 2869224}
    t, ids = 1695835586000000, iter(range(10000, 10**6))

    def device(category, name, dur, args, at, ready):
        number = next(ids)
        call = "cudaMemcpyAsync" if category == "gpu_memcpy" else "cudaLaunchKernel"
        out.append({**host, "cat": "cuda_runtime", "name": call, "ts": at, "dur": 5,
                    "args": {"External id": number, "correlation": number}})
        begin = max(at + 6, ready)
        out.append({"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": begin, "dur": dur,
                    "args": {**args, "External id": number, "correlation": number, "device": 0, "stream": 7}})
        return begin + dur

    for step in range(STEPS):
        start = t
        ready = t
        for category, name, dur, args in before:
            if category == "host":
                out.append({**host, "cat": "cpu_op", "name": name, "ts": t, "dur": dur, "args": {}})
                t = ready = t + dur
            else:
                ready = device(category, name, dur, args, t, ready)
                t += launch
        for event in kernels:
            event = copy.deepcopy(event)
            if change(event) is False:
                continue
            ready = device("kernel", event["name"], event["dur"], event["args"], t, ready) + gap
            t += launch
            if wait:
                out.append({**host, "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "ts": t,
                            "dur": max(ready + wait - t, 1), "args": {}})
                t = ready = max(t + 1, ready + wait)
        for category, name, dur, args in after:
            if category == "host":
                t = max(t, ready)
                out.append({**host, "cat": "user_annotation", "name": name, "ts": t, "dur": dur, "args": {}})
                t = ready = t + dur
            else:
                ready = device(category, name, dur, args, t, ready)
        t = max(t, ready) + 5
        if marked:
            out.append({**host, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start - 2,
                        "dur": t - start, "args": {}})
        t += 10
    trace["traceEvents"] = out
    folder.json("trace.json", trace)


def longer(**by):
    def change(event):
        for part, factor in by.items():
            if part in event["name"]:
                event["dur"] = max(1, round(event["dur"] * factor))
    return change


def torch_products(folder):
    kineto(folder, longer(gemm=3, scudnn=3))


def torch_window(folder):
    kineto(folder, longer(gemm=3, scudnn=3), marked=False)


def torch_elementwise(folder):
    kineto(folder, longer(elementwise=8, epilogue=8))


def torch_layouts(folder):
    kineto(folder, longer(nchwToNhwc=25))


def torch_pageable(folder):
    kineto(folder, before=[("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 6000, {"bytes": 77070336})])


def torch_pinned(folder):
    kineto(folder, before=[("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 4500, {"bytes": 77070336})])


def torch_small_copies(folder):
    kineto(folder, longer(e=0.2), launch=4,
           before=[("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 12, {"bytes": 4096})] * 80)


def torch_loader(folder):
    kineto(folder, before=[("host", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 7000, {})])


def torch_post(folder):
    kineto(folder, after=[("host", "postprocess", 6000, {})])


def torch_tiny(folder):
    def change(event):
        event["dur"] = min(event["dur"], 4)
    kineto(folder, change, launch=20)


def torch_waits(folder):
    kineto(folder, longer(e=0.5), wait=90)


def torch_nccl(folder):
    kineto(folder, after=[("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 5500,
                           {"grid": [24, 1, 1], "block": [512, 1, 1]})])


def torch_gloo(folder):
    trace = load("pytorch/kineto_cpu_only.json.gz")
    for event in trace["traceEvents"]:
        if event["name"] == "gloo:all_reduce":
            event["dur"] *= 0.9
    folder.json("trace.json", trace)


def torch_pool(folder):
    def change(event):
        if "max_pool" in event["name"] and event["dur"] > 150:
            event["dur"] *= 60
        event["name"] = event["name"].replace("sgemm", "fp16_s16816gemm").replace("scudnn", "fp16_s16816cudnn")
        event["name"] = event["name"].replace("tf32f32_tf32f32_f32", "f16f16_f16f32_f32").replace("float", "__half")
    kineto(folder, change)


# ---- Nsight Systems: kernels put into the real export, whose own capture had none


KERNELS = ("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER,end INTEGER,deviceId INTEGER,contextId INTEGER,streamId INTEGER,"
           "correlationId INTEGER,globalPid INTEGER,demangledName INTEGER,shortName INTEGER,gridX INTEGER,gridY INTEGER,"
           "gridZ INTEGER,blockX INTEGER,blockY INTEGER,blockZ INTEGER)")
COPIES = ("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER,end INTEGER,deviceId INTEGER,contextId INTEGER,streamId INTEGER,"
          "correlationId INTEGER,globalPid INTEGER,bytes INTEGER,copyKind INTEGER,srcKind INTEGER,dstKind INTEGER)")
RANGES = ("CREATE TABLE NVTX_EVENTS(start INTEGER,end INTEGER,eventType INTEGER,text TEXT,globalTid INTEGER,textId INTEGER)")


def nsys(folder, work, marked=True):
    """work of every step: (name, us), (None, us, kind, from, to) a copy."""
    path = folder.name("report.sqlite")
    shutil.copyfile(source("nsys/gemm_profile.sqlite"), path)
    os.chmod(path, 0o600)
    db = sqlite3.connect(path)
    for table in (KERNELS, COPIES, RANGES):
        db.execute(table)
    thread = db.execute("SELECT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME LIMIT 1").fetchone()[0]
    process, t, number = thread & ~0xFFFFFF, 1400000000, 1000
    names = {}
    for name in {row[0] for row in work if row[0]} | {"cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020"}:
        names[name] = 900000 + len(names)
        db.execute("INSERT INTO StringIds VALUES(?,?)", (names[name], name))
    for step in range(STEPS):
        start = t
        for row in work:
            number += 1
            end = t + 7000 + round(row[1] * 1000)
            call = "cudaLaunchKernel_v7000" if row[0] else "cudaMemcpyAsync_v3020"
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME(start,end,eventClass,globalTid,correlationId,nameId,returnValue) "
                       "VALUES(?,?,0,?,?,?,0)", (t, t + 5000, thread, number, names[call]))
            if row[0]:
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?,?,0,1,7,?,?,?,?,64,8,1,128,1,1)",
                           (t + 7000, end, number, process, names[row[0]], names[row[0]]))
            else:
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(?,?,0,1,7,?,?,8000000,?,?,?)",
                           (t + 7000, end, number, process, *row[2:]))
            t = end + 200
        if marked:
            db.execute("INSERT INTO NVTX_EVENTS VALUES(?,?,59,?,?,NULL)", (start - 500, t + 300, f"gemm {step}", thread))
        t += 2000
    db.commit()
    db.close()


SGEMM = [("ampere_sgemm_128x64_nn", 900), ("ampere_sgemm_64x64_tn", 400)]
HGEMM = [("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32", 500)]


def nsys_products(folder):
    nsys(folder, SGEMM * 3)


def nsys_window(folder):
    nsys(folder, SGEMM * 5, marked=False)


def nsys_pageable(folder):
    nsys(folder, [(None, 1200, 1, 0, 2)] + HGEMM * 3)


def nsys_nccl(folder):
    nsys(folder, HGEMM * 3 + [("ncclDevKernel_AllGather_RING_LL", 1300)] + HGEMM)


def nsys_nccl_only(folder):
    nsys(folder, [("ncclDevKernel_AllReduce_Sum_f16_RING_LL", 1300), ("ncclDevKernel_SendRecv", 700)])


# ---- Ascend


def ascend(folder, change=lambda row: True, drop=(), steps=3, gap=1.0):
    """The kernels of the table one behind the other, in several steps."""
    with open(source("ascend/kernel_details_a.csv"), encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    fields, out, t = [f for f in rows[0] if f not in drop], [], 1736413971411629.0
    for step in range(steps):
        for number, row in enumerate(rows):
            row = dict(row)
            if change(row) is False:
                continue
            row.update({"Step Id": str(step + 1), "Task ID": str(number), "Start Time(us)": f"{t:.3f}\t"})
            t += float(row["Duration(us)"]) + gap
            out.append({key: row[key] for key in fields})
    with open(folder.name("kernel_details.csv"), "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(out)


def times(row, by):
    row["Duration(us)"] = f"{float(row['Duration(us)']) * by:.3f}"


def ascend_float(folder):
    def change(row):
        for key in ("Input Data Types", "Output Data Types"):
            row[key] = row[key].replace("DT_BF16", "FLOAT")
    ascend(folder, change)


def ascend_float_bare(folder):
    with_types = ("Input Data Types", "Output Data Types", "Name", "Type", "Start Time(us)", "Duration(us)", "Step Id",
                  "Task ID", "Stream ID", "Accelerator Core")
    with open(source("ascend/kernel_details_a.csv"), encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file))

    def change(row):
        for key in ("Input Data Types", "Output Data Types"):
            row[key] = row[key].replace("DT_BF16", "FLOAT")
        return row["Type"].startswith("MatMul")
    ascend(folder, change, [n for n in names if n not in with_types])


def ascend_adds(folder):
    def change(row):
        if row["Type"] == "Add" and float(row["Duration(us)"]) > 10:
            times(row, 90)
    ascend(folder, change)


def ascend_host(folder):
    def change(row):
        if row["Type"] == "Add":
            row["Accelerator Core"] = "AI_CPU"
            times(row, 40)
    ascend(folder, change)


def ascend_layouts(folder):
    def change(row):
        if row["Type"] == "Add":
            row.update({"Type": "TransData", "Name": "trans_TransData_1"})
            times(row, 40)
    ascend(folder, change)


def ascend_hccl(folder):
    def change(row):
        if row["Type"] == "Add":
            row.update({"Type": "hcom_allReduce_", "Name": "hcom_allReduce__123_1", "Accelerator Core": "HCCL",
                        "Input Shapes": "N/A", "Output Shapes": "N/A"})
            row["Duration(us)"] = "1500"
    ascend(folder, change)


def ascend_hccl_only(folder):
    def change(row):
        if row["Type"] != "Add":
            return False
        row.update({"Type": "hcom_allReduce_", "Name": "hcom_allReduce__123_1", "Accelerator Core": "HCCL",
                    "Input Shapes": "N/A", "Output Shapes": "N/A"})
        row["Duration(us)"] = "1500"
        return True
    ascend(folder, change)


def ascend_trace_host(folder):
    events = load("ascend/trace_view.json")
    for event in events:
        if event.get("args", {}).get("Task Type") == "AI_CPU":
            event["dur"] = float(event["dur"]) * 2
    folder.json("trace_view.json", events)


# what an expert names first ("a|b" where the same thing has two names; "-": nothing but a trade or a note)
VARIANTS = [
    (trt_resnet, "reduced_precision:fp16", "fused FP32 convolutions on a GPU: FP16"),
    (trt_no_graph, "reduced_precision:fp16", "the same, convolutions longer, layers not described"),
    (trt_reformats, "layout_conversions", "reformats take half of the engine"),
    (trt_h2d, "h2d_bound|copy_dominated", "host to device 43 % of every run"),
    (trt_d2h, "slow_d2h|copy_dominated", "device to host 41 % of every run"),
    (trt_pooling, "outlier_operator", "one pooling takes twice as long as all convolutions together"),
    (trt_half, "-", "fused, FP16, no reformats: nothing is wrong"),
    (trt_gemm, "outlier_operator", "one small Gemm takes as long as all convolutions"),
    (qat_quantise, "quantisation_without_gain|layout_conversions", "Q layers take 40 % of an INT8 engine"),
    (qat_bare, "quantisation_without_gain|layout_conversions", "the same from the names alone"),
    (qat_depthwise, "conv_dominated", "INT8 depthwise convolutions are nearly all: kernels for these shapes"),
    (qat_tiny, "launch_bound", "some seventy layers of 1 to 4 us"),
    (ort_disturbed, "-", "two of three runs were disturbed, each elsewhere: the usual figures show nothing wrong"),
    (ort_quantise, "quantisation_without_gain", "Q and DQ 40 % of an INT8 network"),
    (ort_transpose, "layout_conversions", "transposes take 40 %"),
    (ort_gaps, "scheduling_gaps", "idle 40 % between operators"),
    (ort_post, "slow_post|outlier_operator", "NonMaxSuppression at the end takes two thirds"),
    (ort_one_slow, "outlier_operator", "one convolution takes two thirds, its like take 30 us"),
    (ort_fallback, "host_fallback", "every Add on the host with copies there and back"),
    (ort_diverse, "operator_diverse", "Gather, Slice, TopK, Resize and convolutions share the time"),
    (ort_shapes, "dynamic_shapes|slow_runs", "each run has other shapes and its own time"),
    (ort_old_unfused, "unfused_pattern", "Add and Relu behind each Conv take half"),
    (ort_old_gaps, "scheduling_gaps|launch_bound", "idle twice as long as it computes, between tiny operators"),
    (torch_products, "reduced_precision:fp16", "f32 convolutions and products take three quarters"),
    (torch_window, "reduced_precision:fp16", "the same, steps not marked"),
    (torch_elementwise, "unfused_pattern|memory_bound", "bias and relu kernels behind each product take 60 %"),
    (torch_layouts, "layout_conversions", "nchwToNhwc takes half"),
    (torch_pageable, "pageable_copies", "host to device 53 %, from pageable memory"),
    (torch_pinned, "h2d_bound|copy_dominated", "host to device 47 %, pinned already"),
    (torch_small_copies, "many_small_copies", "80 copies of 4 KB a step, half of its time"),
    (torch_loader, "slow_pre", "the device waits for the loader 57 % of a step"),
    (torch_post, "slow_post", "post-processing takes half of a step"),
    (torch_tiny, "launch_bound", "kernels of 4 us, launched every 20 us"),
    (torch_waits, "sync_heavy", "the host waits after every kernel"),
    (torch_pool, "outlier_operator", "one pooling of an FP16 network takes two thirds"),
    (torch_nccl, "communication", "all-reduce 52 %, behind the computation"),
    (torch_gloo, "communication", "all-reduce is all there is"),
    (nsys_products, "reduced_precision:fp16", "sgemm alone"),
    (nsys_window, "reduced_precision:fp16", "the same, not marked"),
    (nsys_pageable, "pageable_copies", "host to device 44 %, from pageable memory"),
    (nsys_nccl, "communication", "all-gather 39 %, nothing computes beside it"),
    (nsys_nccl_only, "communication", "nothing but collectives"),
    (ascend_float, "reduced_precision:fp16", "FLOAT products on a cube unit made for FP16"),
    (ascend_float_bare, "reduced_precision:fp16", "the same without most columns"),
    (ascend_adds, "memory_bound", "Adds with mte2 at 84 % take half"),
    (ascend_host, "host_fallback|reference_fallback", "Adds on AI CPU take a third"),
    (ascend_layouts, "layout_conversions", "TransData takes a third"),
    (ascend_hccl, "communication", "all-reduce takes half, nothing beside it"),
    (ascend_hccl_only, "communication", "nothing but collectives"),
    (ascend_trace_host, "host_fallback|scheduling_gaps", "casts on AI CPU, the device idle two thirds"),
]


def first_finding(folder):
    done = subprocess.run([HONE, "diagnose", "--json", "--lang", "en", *folder.files], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        return "error", done.stderr.strip()
    findings = json.loads(done.stdout)["findings"]
    if not findings:
        return "-", "no finding"
    f = findings[0]
    return f["id"], f"{f['category']}: {f['title']}" + "".join(f"; {g['id']}" for g in findings[1:4])


def agrees(said, title, wanted):
    if wanted == "-":
        return said == "-" or title.startswith(("trade", "note"))
    return any(said == one or said.startswith(one + ":") for one in wanted.split("|"))


def main():
    agreed = 0
    only = sys.argv[3:]
    for write, wanted, why in VARIANTS:
        if only and write.__name__ not in only:
            continue
        with tempfile.TemporaryDirectory(prefix="hone_variant_") as path:
            folder = Folder(path if not os.environ.get("KEEP") else os.environ["KEEP"])
            write(folder)
            said, title = first_finding(folder)
        good = agrees(said, title, wanted)
        agreed += good
        print(f"{'ok  ' if good else 'MISS'} {write.__name__}: {said}" + ("" if good else f", not {wanted} ({why})") +
              f"  [{title}]")
    count = len(only) or len(VARIANTS)
    print(f"{agreed} of {count} agree")
    return agreed < AGREE * count


sys.exit(main())
