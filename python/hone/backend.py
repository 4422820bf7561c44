"""hone as a backend of ONNX (onnx.backend.base), which ONNX's own test runner and scoreboard drive.

Needs the package onnx; the rest of hone does not.
"""

from __future__ import annotations

import ctypes as c
from typing import Any, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

from . import _library as lib
from ._library import library
from .errors import refusal
from .session import Session
from .values import Value


class HoneRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> Tuple[Value, ...]:
        """Runs once. inputs: {name: value}, or values in the order of the model's inputs; results in the order of
        its outputs. kwargs: of Session.run."""
        if not isinstance(inputs, Mapping):
            values = inputs if isinstance(inputs, (list, tuple)) else [inputs]
            names = [p.name for p in self.session.inputs]
            if len(values) > len(names):
                raise refusal("inputs", "too many values", expected=f"at most {len(names)}", got=str(len(values)))
            inputs = dict(zip(names, values))
        return tuple(self.session.run(inputs, **kwargs).values())


def _device(name: str) -> str:
    device = Device(name)
    if device.type != DeviceType.CUDA:
        return "cpu"
    return f"cuda:{device.device_id}"


class HoneBackend(Backend):
    """What onnx.backend.test.BackendTest takes."""

    @classmethod
    def prepare(cls, model: Union[ModelProto, bytes], device: str = "CPU", **kwargs: Any) -> HoneRep:
        """model ready to run on device ("CPU", "CUDA", "CUDA:1"). kwargs: of Session."""
        data = model if isinstance(model, bytes) else model.SerializeToString()
        options = {k: v for k, v in kwargs.items() if k in ("precision", "threads", "level", "shapes")}
        return HoneRep(Session(data, device=_device(device), **options))

    @classmethod
    def run_node(cls, node: NodeProto, inputs: Any, device: str = "CPU",
                 outputs_info: Optional[Sequence[Tuple[np.dtype, Tuple[int, ...]]]] = None,
                 **kwargs: Any) -> Tuple[Value, ...]:
        """Runs one operator on arrays; kwargs: opset_version (the newest), and those of prepare."""
        values = [np.asarray(v) for v in (inputs.values() if isinstance(inputs, Mapping) else inputs)]
        names = list(dict.fromkeys(n for n in node.input if n))
        if len(values) != len(names):
            raise refusal(node.op_type, "another number of values than inputs", expected=str(len(names)),
                          got=str(len(values)))
        given = [helper.make_tensor_value_info(n, _type(v.dtype), v.shape) for n, v in zip(names, values)]
        made = [n for n in node.output if n]
        outputs = [helper.make_tensor_value_info(n, _type(np.dtype(outputs_info[i][0])), outputs_info[i][1])
                   if outputs_info else helper.make_empty_tensor_value_info(n) for i, n in enumerate(made)]
        version = int(kwargs.pop("opset_version", onnx.defs.onnx_opset_version()))
        domains = [helper.make_opsetid(node.domain, version)]
        model = helper.make_model(helper.make_graph([node], node.op_type, given, outputs), opset_imports=domains)
        return cls.prepare(model, device, **kwargs).run(values)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        try:
            name = _device(device)
        except (AttributeError, ValueError): # a device that ONNX itself does not know
            return False
        return name == "cpu" or library.hone_device_about(name.encode(), None, c.byref(lib.Error())) == 0


def _type(dtype: np.dtype) -> int:
    return TensorProto.STRING if dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(dtype)


is_compatible = HoneBackend.is_compatible
prepare = HoneBackend.prepare
run = HoneBackend.run_model
run_model = HoneBackend.run_model
run_node = HoneBackend.run_node
supports_device = HoneBackend.supports_device
