"""libhone.so through ctypes: where it is, its structures (include/hone/*.h) and its functions.

ctypes releases the GIL around every call.
"""

from __future__ import annotations

import ctypes as c
import os
from typing import Optional

MAX_RANK = 8
SEQUENCE, OPTIONAL, MAP_I64, MAP_STRING = 64, 128, 256, 512


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("what", c.c_char * 320), ("where", c.c_char * 256), ("expected", c.c_char * 160),
                ("got", c.c_char * 160), ("hint", c.c_char * 320)]


class Quant(c.Structure):
    _fields_ = [("count", c.c_uint32), ("axis", c.c_int32), ("scale", c.c_void_p), ("zero_point", c.c_void_p)]


class Desc(c.Structure):
    _fields_ = [("dtype", c.c_int), ("layout", c.c_int), ("rank", c.c_int32), ("device", c.c_int32),
                ("dim", c.c_int64 * MAX_RANK), ("stride", c.c_int64 * MAX_RANK), ("channel_pitch", c.c_int64),
                ("quant", Quant)]


class Tensor(c.Structure):
    _fields_ = [("desc", Desc), ("data", c.c_void_p)]


class Items(c.Structure):
    _fields_ = [("count", c.c_size_t), ("item", c.POINTER(c.POINTER(Tensor)))]


class String(c.Structure):
    _fields_ = [("ptr", c.c_void_p), ("len", c.c_size_t)]


class Port(c.Structure):
    _fields_ = [("name", c.c_char_p), ("desc", Desc), ("symbol", c.c_char_p * MAX_RANK), ("optional", c.c_bool)]


class Binding(c.Structure):
    _fields_ = [("input", c.c_char_p), ("symbol", c.c_char_p), ("rank", c.c_int32), ("dim", c.c_int64 * MAX_RANK)]


class EngineOptions(c.Structure):
    _fields_ = [("device", c.c_char_p), ("threads", c.c_uint32), ("isa", c.c_char_p), ("tactics", c.c_char_p),
                ("tuning", c.c_char_p)]


class PlanOptions(c.Structure):
    _fields_ = [("level", c.c_int), ("precision", c.c_char_p), ("f32_nodes", c.POINTER(c.c_char_p)),
                ("n_f32_nodes", c.c_uint32), ("bindings", c.POINTER(Binding)), ("n_bindings", c.c_uint32),
                ("batch", c.c_int64), ("reference", c.c_bool), ("passes", c.c_char_p), ("fold_seconds", c.c_double),
                ("prefer", c.c_int), ("untuned", c.c_bool), ("chains", c.c_int), ("separate", c.c_bool),
                ("preview", c.c_bool), ("slices", c.c_uint32), ("weights", c.c_void_p), ("over_bound", c.c_bool)]


class RunOptions(c.Structure):
    _fields_ = [("max_seconds", c.c_double), ("max_bytes", c.c_uint64), ("max_nodes", c.c_uint64)]


class ZooOptions(c.Structure):
    _fields_ = [("batch", c.c_int64), ("width", c.c_double), ("size", c.c_int64), ("seed", c.c_uint64),
                ("round", c.c_int64), ("boxes", c.c_bool)]


# The structures above by their names in C; tests compare them with what the compiler says.
STRUCTURES = {"hone_error": Error, "hone_quant": Quant, "hone_tensor_desc": Desc, "hone_tensor": Tensor,
              "hone_items": Items, "hone_string": String, "hone_port": Port, "hone_binding": Binding,
              "hone_engine_options": EngineOptions, "hone_plan_options": PlanOptions,
              "hone_run_options": RunOptions, "hone_zoo_options": ZooOptions}

# void *allocate(void *arg, uint32_t output, const hone_tensor_desc *desc)
Allocate = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_uint32, c.POINTER(Desc))

_out, _error, _uint = c.POINTER(c.c_void_p), c.POINTER(Error), c.c_uint32
_FUNCTIONS = {
    "hone_version": (c.c_char_p,),
    "hone_status_name": (c.c_char_p, c.c_int),
    "hone_status_exit_code": (c.c_int, c.c_int),
    "hone_error_format": (c.c_ulong, _error, c.c_char_p, c.c_ulong),
    "hone_dtype_name": (c.c_char_p, c.c_int),
    "hone_dtype_size": (c.c_size_t, c.c_int),
    "hone_desc": (Desc, c.c_int, c.c_int32, c.POINTER(c.c_int64)),
    "hone_desc_format": (c.c_char_p, c.POINTER(Desc), c.c_char_p, c.c_size_t),
    "hone_model_load": (c.c_int, c.c_char_p, _out, _error),
    "hone_model_load_memory": (c.c_int, c.c_char_p, c.c_size_t, c.c_char_p, _out, _error),
    "hone_zoo_build": (c.c_int, c.c_char_p, c.POINTER(ZooOptions), _out, _error),
    "hone_model_release": (None, c.c_void_p),
    "hone_model_inputs": (_uint, c.c_void_p),
    "hone_model_outputs": (_uint, c.c_void_p),
    "hone_model_input": (c.c_bool, c.c_void_p, _uint, c.POINTER(Port)),
    "hone_model_output": (c.c_bool, c.c_void_p, _uint, c.POINTER(Port)),
    "hone_engine_create": (c.c_int, c.POINTER(EngineOptions), _out, _error),
    "hone_engine_destroy": (None, c.c_void_p),
    "hone_device_about": (c.c_int, c.c_char_p, c.c_void_p, _error),
    "hone_weights_create": (c.c_int, c.c_void_p, c.c_void_p, _out, _error),
    "hone_weights_destroy": (None, c.c_void_p),
    "hone_plan_create": (c.c_int, c.c_void_p, c.c_void_p, c.POINTER(PlanOptions), _out, _error),
    "hone_plan_destroy": (None, c.c_void_p),
    "hone_plan_rebind": (c.c_int, c.c_void_p, c.POINTER(Binding), _uint, c.POINTER(c.c_bool), _error),
    "hone_plan_is_saved": (c.c_bool, c.c_char_p),
    "hone_plan_saved_threads": (c.c_int, c.c_char_p, c.POINTER(_uint), _error),
    "hone_plan_open": (c.c_int, c.c_void_p, c.c_char_p, _out, _error),
    "hone_plan_precision": (c.c_char_p, c.c_void_p),
    "hone_plan_inputs": (_uint, c.c_void_p),
    "hone_plan_outputs": (_uint, c.c_void_p),
    "hone_plan_input_name": (c.c_char_p, c.c_void_p, _uint),
    "hone_plan_output_name": (c.c_char_p, c.c_void_p, _uint),
    "hone_plan_input_desc": (c.POINTER(Desc), c.c_void_p, _uint),
    "hone_plan_output_desc": (c.POINTER(Desc), c.c_void_p, _uint),
    "hone_context_create": (c.c_int, c.c_void_p, _out, _error),
    "hone_context_destroy": (None, c.c_void_p),
    "hone_context_rebind": (c.c_int, c.c_void_p, c.POINTER(Binding), _uint, c.POINTER(c.c_bool), _error),
    "hone_context_bind_outputs": (c.c_int, c.c_void_p, c.POINTER(c.POINTER(Tensor)), _error),
    "hone_context_bind_allocator": (c.c_int, c.c_void_p, _uint, Allocate, c.c_void_p, _error),
    "hone_context_run": (c.c_int, c.c_void_p, c.POINTER(c.POINTER(Tensor)), c.POINTER(RunOptions), _error),
    "hone_context_output": (c.POINTER(Tensor), c.c_void_p, _uint),
}


def _candidates() -> list[str]:
    named = os.environ.get("HONE_LIBRARY")
    if named:
        return [named]
    own = os.path.join(os.path.dirname(__file__), "lib", "libhone.so.0")
    return [own] if os.path.exists(own) else ["libhone.so.0"]


def _load() -> c.CDLL:
    failed = []
    for path in _candidates():
        try:
            library = c.CDLL(path)
            break
        except OSError as e:
            failed.append(str(e))
    else:
        raise ImportError("hone's library cannot be loaded: " + "; ".join(failed)
                          + " (HONE_LIBRARY names the file libhone.so)")
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


library = _load()


def dims_of(desc: Desc) -> "c.Array[c.c_int64]":
    """The dimensions of a descriptor, where they lie: its attribute makes a new array each time."""
    return (c.c_int64 * MAX_RANK).from_address(c.addressof(desc) + Desc.dim.offset)


def text(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "replace")


def encoded(value: Optional[str]) -> Optional[bytes]:
    return None if value is None else value.encode()
