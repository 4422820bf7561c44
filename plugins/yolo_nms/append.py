"""Puts decoding and YoloNms behind the three heads of YOLOv3: python append.py YOLOV3.onnx OUT.onnx [SCORE].

With --share PROFILE.json instead: how much of a run's time is spent behind the network, from what hone profile --json
says of OUT.onnx. Nodes behind the network are called post/...
"""
import json
import sys

ANCHORS = {
    13: [(116, 90), (156, 198), (373, 326)],
    26: [(30, 61), (62, 45), (59, 119)],
    52: [(10, 13), (16, 30), (33, 23)],
}


def append(source, target, score):
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load(source)
    graph = model.graph
    heads = list(graph.output)
    nodes, parts = [], []

    def constant(name, value):
        graph.initializer.append(numpy_helper.from_array(np.asarray(value), "post/" + name))
        return "post/" + name

    def node(op, inputs, name, **attributes):
        nodes.append(helper.make_node(op, inputs, ["post/" + name], name="post/" + name, **attributes))
        return "post/" + name

    side = 416
    cut = constant("cut", np.array([2, 2, 81], np.int64))
    for head in heads:
        dims = [d.dim_value for d in head.type.tensor_type.shape.dim]
        grid = next((g for g in ANCHORS if dims[1:] == [255, g, g]), None)
        if grid is None:
            sys.exit(f"append.py: {head.name} is no head of YOLOv3-416: expected 255 x 13 x 13, 26 x 26 or 52 x 52, got {dims}")
        n, classes = head.name, 80
        split = constant(n + "/split", np.array([1, 3, 5 + classes, grid, grid], np.int64))
        x = node("Reshape", [n, split], n + "/anchors")
        x = node("Transpose", [x], n + "/last", perm=[0, 1, 3, 4, 2])
        names = ["post/" + n + "/" + part for part in ("xy", "wh", "rest")]
        nodes.append(helper.make_node("Split", [x, cut], names, name="post/" + n + "/parts", axis=4))
        cells = np.stack(np.meshgrid(np.arange(grid), np.arange(grid)), -1).astype(np.float32)[None, None]
        sizes = np.array(ANCHORS[grid], np.float32).reshape(1, 3, 1, 1, 2)
        xy = node("Sigmoid", [names[0]], n + "/xy_sigmoid")
        xy = node("Add", [xy, constant(n + "/cells", cells)], n + "/xy_cell")
        xy = node("Mul", [xy, constant(n + "/stride", np.float32(side / grid))], n + "/xy_pixel")
        wh = node("Mul", [node("Exp", [names[1]], n + "/wh_exp"), constant(n + "/sizes", sizes)], n + "/wh_pixel")
        rest = node("Sigmoid", [names[2]], n + "/scores")
        box = node("Concat", [xy, wh, rest], n + "/box", axis=4)
        rows = constant(n + "/rows", np.array([1, -1, 5 + classes], np.int64))
        parts.append(node("Reshape", [box, rows], n + "/boxes"))
    every = node("Concat", parts, "head", axis=1)
    nms = helper.make_node("YoloNms", [every], ["selected", "count"], name="post/nms", domain="custom", score=score)
    nodes.append(nms)
    graph.node.extend(nodes)
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("selected", TensorProto.INT64, None))
    graph.output.append(helper.make_tensor_value_info("count", TensorProto.INT64, [1]))
    model.opset_import.append(helper.make_opsetid("custom", 1))
    onnx.save(model, target)


def share(path):
    with open(path, encoding="utf-8") as file:
        layers = json.load(file)["layers"]
    behind_it = [layer["name"] for layer in layers if layer["name"].startswith("post/")]

    def is_post(layer):
        turned = layer["type"] == "Reformat" and any(name.startswith(f"post/{layer['name']}/") for name in behind_it)
        return turned or layer["name"] in behind_it

    post = [layer for layer in layers if is_post(layer)]
    whole, behind = (sum(layer["time_ms"] for layer in some) for some in (layers, post))
    print(f"behind the network: {behind:.3g} of {whole:.4g} ms, {100 * behind / whole:.2g} %")


if len(sys.argv) == 3 and sys.argv[1] == "--share":
    share(sys.argv[2])
elif len(sys.argv) in (3, 4):
    append(sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) == 4 else 0.25)
else:
    sys.exit(__doc__)
