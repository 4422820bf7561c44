"""Sessions: a model that runs."""

from __future__ import annotations

import ctypes as c
import numbers
import operator
import os
import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _library as lib
from ._library import library
from .errors import HoneError, check, refusal
from .values import Given, Pool, Room, Value, address, as_array, described, dtype_name, is_as_wanted, numpy_dtype, \
    plain_dtype, taken, written

Dimension = Union[int, str, None]
PRECISIONS = ("f32", "bf16", "fp16", "tf32", "fp8") # of any device
PLANS = 8 # sets of shapes whose plans a session keeps


@dataclass(frozen=True)
class Port:
    """An input or output of a model.

    name   as in the model
    type   hone's name: "f32", "i64", "string", "seq f32"...
    shape  a number, the name of a symbol, or None where the model leaves it open; None: not even the rank is known
    """

    name: str
    type: str
    shape: Optional[Tuple[Dimension, ...]]
    code: int

    @property
    def dtype(self) -> np.dtype:
        """numpy's type of the elements (of a sequence or optional: of the arrays in it)."""
        return numpy_dtype(self.code & ~(lib.SEQUENCE | lib.OPTIONAL))


def _shape(desc: lib.Desc, symbols: Optional[Sequence[Optional[bytes]]] = None) -> Optional[Tuple[Dimension, ...]]:
    if desc.rank < 0:
        return None
    return tuple(desc.dim[i] if desc.dim[i] >= 0 else lib.text(symbols[i]) if symbols and symbols[i] else None
                 for i in range(desc.rank))


def _by(dims: Sequence[Dimension]) -> str:
    return "x".join("?" if n is None else str(n) for n in dims) or "no dimensions"


def _wanted(port: Port) -> str:
    inside = "" if port.shape is None or port.code & (lib.SEQUENCE | lib.OPTIONAL) else f"[{_by(port.shape)}]"
    return port.type + ("[]" if port.shape == () else inside)


def _fits(port: Port, dims: Sequence[int]) -> bool:
    if port.shape is None:
        return True
    if len(port.shape) != len(dims):
        return False
    for n, m in zip(port.shape, dims):
        if n != m and isinstance(n, int):
            return False
    return True


def _whole(where: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    """value as an int, which it has to be: neither 1.5 nor True nor "2"."""
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        bounds = f"{least} to {most}" if most < 2**31 else f"{least} or more"
        raise refusal(where, "wrong value", expected=f"a whole number, {bounds}", got=repr(value))
    return number


def _check_arguments(device: Any, precision: Any, threads: Any, level: Any) -> None:
    if not isinstance(device, str) or not device.isascii() or "\0" in device:
        raise refusal("device", "wrong value", expected='"cpu", "cuda" or "cuda:N"', got=repr(device))
    # A session without a plan would not say so before its first run.
    if not (precision is None or isinstance(precision, str) and precision in PRECISIONS):
        raise refusal("precision", "wrong value", expected=f"None or one of {PRECISIONS}", got=repr(precision))
    _whole("threads", threads, 0, 1024)
    _whole("level", level, 0, 3)


class _Handle:
    """A thing of the library that is destroyed when nobody has it any more; `needs` outlives it."""

    def __init__(self, make: Any, destroy: Any, *arguments: Any, needs: Any = ()) -> None:
        self.needs = needs
        error, handle = lib.Error(), c.c_void_p()
        check(make(*arguments, c.byref(handle), c.byref(error)), error)
        self.value = handle
        weakref.finalize(self, destroy, handle).atexit = False


class _Context:
    """A context with the tensors of its runs, of which only the addresses change from run to run."""

    def __init__(self, plan: "_Plan") -> None:
        self.value = c.c_void_p()
        self.needs = plan.handle
        self._destroy = library.hone_context_destroy
        self.error = lib.Error()
        self.check(library.hone_context_create(plan.handle.value, self.value, self.error))
        self.given = [lib.Tensor() for _ in plan.inputs]
        self.shapes: List[Optional[Tuple[int, ...]]] = [None] * len(plan.inputs)
        self.pointers = (c.POINTER(lib.Tensor) * max(len(plan.inputs), 1))(*[c.pointer(t) for t in self.given])
        self.made = [lib.Tensor() for _ in plan.outputs]
        self._places = (c.POINTER(lib.Tensor) * max(len(plan.outputs), 1))()
        self._pointers = [c.pointer(t) for t in self.made]
        self._pool: Optional[Pool] = None
        self._arrays: List[Optional[np.ndarray]] = []
        # Of outputs whose shapes the run finds out; the method is bound to no context, which would keep itself.
        itself = weakref.ref(self)
        self._allocate = lib.Allocate(lambda _, i, desc: itself()._make_room(i, desc.contents)) if plan.late else None
        self._rooms: List[Optional[Room]] = [None] * len(plan.outputs)
        self.reshape(plan)

    def reshape(self, plan: "_Plan") -> None:
        """For the shapes that the plan has now."""
        shapes = plan.shapes()
        for i, shape in enumerate(shapes):
            if shape != self.shapes[i]:
                self.given[i].desc = plan.descs[i]
        self.shapes = shapes
        self.bound = self.whole = False # some outputs, all, to memory of numpy's

    def check(self, status: int) -> None:
        if status:
            error, self.error = self.error, lib.Error()
            check(status, error)

    def close(self) -> None:
        if self.value:
            self._destroy(self.value)
        self.value.value = None

    def __del__(self) -> None:
        self.close()

    def bind(self, plan: "_Plan", pool: Pool, into: Mapping[str, np.ndarray]) -> List[Optional[np.ndarray]]:
        """Outputs are written to these arrays now, those in `into` there; None: to memory of the context's own."""
        arrays: List[Optional[np.ndarray]] = []
        for i, (room, tensor) in enumerate(zip(plan.rooms(), self.made)):
            before = self._rooms[i]
            if into and plan.outputs[i] in into:
                array = into[plan.outputs[i]]
                tensor.desc, tensor.data = described(array), address(array)
                self._rooms[i], self._places[i] = None, self._pointers[i]
                arrays.append(array)
                continue
            if room is not before:
                self._rooms[i] = room
                if room:
                    tensor.desc = room.desc
            if not room or not before:
                self._places[i] = self._pointers[i] if room else None
            array = None
            if room:
                array, tensor.data = room.make(pool)
            arrays.append(array)
        self.bound, self.whole = True, not any(array is None for array in arrays)
        self.check(library.hone_context_bind_outputs(self.value, self._places, self.error))
        for i in plan.late:
            if arrays[i] is not None:
                self.whole = False # its shape may be another
                continue
            self.check(library.hone_context_bind_allocator(self.value, i, self._allocate, None, self.error))
        self._arrays, self._pool = arrays, pool
        return arrays

    def _make_room(self, i: int, desc: lib.Desc) -> Optional[int]:
        """Where the output of this shape is to be; called in the run. None: nowhere."""
        try:
            room = Room.of(desc, lib.dims_of(desc)[:max(desc.rank, 0)])
            if room:
                self._arrays[i], at = room.make(self._pool)
                return at
        except MemoryError:
            pass
        return None

    def forget(self) -> None:
        """The arrays of the last run, which are whoever's asked for them."""
        self._arrays = []

    def unbind(self) -> None:
        self.check(library.hone_context_bind_outputs(self.value, None, self.error))
        self.bound = self.whole = False


class _Plan:
    """A plan with its contexts that are free: one run uses one, and runs of several threads several."""

    def __init__(self, handle: _Handle) -> None:
        self.handle = handle
        self.free: List[_Context] = []
        self.users: List[None] = [] # one for each lease: appending and popping are atomic
        at = handle.value
        n_in, n_out = library.hone_plan_inputs(at), library.hone_plan_outputs(at)
        self.inputs = [lib.text(library.hone_plan_input_name(at, i)) for i in range(n_in)]
        self.outputs = [lib.text(library.hone_plan_output_name(at, i)) for i in range(n_out)]
        # These are the plan's own: they say what it is now.
        self.descs = [library.hone_plan_input_desc(at, i).contents for i in range(n_in)]
        self.codes = [desc.dtype for desc in self.descs]
        self.types = [plain_dtype(code) for code in self.codes]
        self._dims = [(lib.dims_of(desc), max(desc.rank, 0)) for desc in self.descs]
        self._made = [(desc, lib.dims_of(desc), max(desc.rank, 0)) for desc in
                      (library.hone_plan_output_desc(at, i).contents for i in range(n_out))]
        self._rooms: List[Optional[Room]] = [None] * n_out
        self._stale = True # the rooms
        # Outputs of numbers whose shapes the runs find out.
        self.late = [i for i, (desc, dims, rank) in enumerate(self._made)
                     if plain_dtype(desc.dtype) and (desc.rank < 0 or min(dims[:rank], default=0) < 0)]

    def shapes(self) -> List[Tuple[int, ...]]:
        """Of the inputs."""
        return [tuple(dims[:rank]) for dims, rank in self._dims]

    def take(self) -> _Context:
        try:
            return self.free.pop()
        except IndexError:
            return _Context(self)

    def move(self, bindings: Any, count: int) -> bool:
        """Becomes the plan for these, where that can be. Nobody uses it."""
        done, error = c.c_bool(), lib.Error()
        while len(self.free) > 1:
            self.free.pop().close()
        if self.free:
            status = library.hone_context_rebind(self.free[0].value, bindings, count, c.byref(done), c.byref(error))
        else:
            status = library.hone_plan_rebind(self.handle.value, bindings, count, c.byref(done), c.byref(error))
        check(status, error)
        if done.value:
            self._stale = True
        for context in self.free:
            context.reshape(self)
        return done.value

    def rooms(self) -> List[Optional[Room]]:
        """Of each output, what numpy can make room for before the run."""
        if self._stale:
            rooms = []
            for room, (desc, dims, rank) in zip(self._rooms, self._made):
                shape = dims[:rank]
                rooms.append(room if room and room.shape == tuple(shape) else Room.of(desc, shape))
            self._rooms, self._stale = rooms, False
        return self._rooms


class _Lease:
    """A context whose results somebody looks at; it is free again when nobody does. The plan was reserved for it."""

    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self.context: Optional[_Context] = None
        self.context = plan.take()

    def __del__(self) -> None:
        if self.context is not None:
            self.plan.free.append(self.context)
        self.plan.users.pop()


class Session:
    """A model on a device.

    model      a file (.onnx, or .hone: a saved plan), "zoo:NAME" (a built-in network), or the bytes of an ONNX file
    device     "cpu", "cuda" or "cuda:N"
    precision  "f32", "bf16", "fp16" ("cuda": also "tf32" and "fp8"); None: as the model is stored
    threads    0: all processors that this process may use
    level      of optimisation, 0 to 3
    shapes     {input: shape} where the model leaves dimensions open: planned at once, as are models that leave nothing
               open; without it, the shapes of each run's arrays are planned when they first come

    Several threads may call `run` of one session at the same time. A new set of shapes makes a new plan (as long as a
    session takes to make); the last 8 are kept. Where new shapes come with every run and grow evenly, as those of a
    decoder whose past is one longer with each token, a plan that is there becomes the new one instead. `close()`, or the end of a `with`, gives the memory back; so does
    losing the last reference. Sessions are neither pickled nor copied: every process makes its own.
    """

    def __init__(self, model: Union[str, "os.PathLike[str]", bytes], *, device: str = "cpu",
                 precision: Optional[str] = None, threads: int = 0, level: int = 2,
                 shapes: Optional[Mapping[str, Sequence[int]]] = None) -> None:
        _check_arguments(device, precision, threads, level)
        self._precision, self._level, self._device = precision, level, device
        self._lock = threading.Lock()
        self._pool = Pool() # of results
        self._plans: "OrderedDict[Any, _Plan]" = OrderedDict()
        self._gone: "OrderedDict[Any, None]" = OrderedDict() # shapes whose plans became others
        self._missed = 0 # runs, one after the other, without a plan
        self._ranks: Any = None # of the bindings that were made last
        self._closed = False
        if isinstance(model, (bytearray, memoryview)):
            model = bytes(model)
        if not isinstance(model, (str, bytes, os.PathLike)):
            raise refusal("model", "wrong type", expected='a path, "zoo:NAME" or the bytes of an ONNX file',
                          got=type(model).__name__)
        try:
            path = None if isinstance(model, bytes) else os.fsencode(model)
        except UnicodeEncodeError:
            raise refusal("model", "the path has characters that no file name has", got=ascii(model)) from None
        self._name = f"{len(model)} bytes" if isinstance(model, bytes) else os.fsdecode(model)
        if path is not None and b"\0" in path:
            raise refusal("model", "there is a zero byte in the path")
        saved = path is not None and library.hone_plan_is_saved(path)
        if saved:
            wanted, error = c.c_uint32(), lib.Error()
            check(library.hone_plan_saved_threads(path, c.byref(wanted), c.byref(error)), error)
            threads = threads or wanted.value
        options = lib.EngineOptions(device=lib.encoded(device), threads=threads)
        self._model: Any = None if saved else self._load(model, path)
        self._engine: Any = _Handle(library.hone_engine_create, library.hone_engine_destroy, c.byref(options))
        # What plans for different shapes pack of the weights is the same for the most part: it is kept once.
        self._weights: Any = None if saved else _Handle(
            library.hone_weights_create, library.hone_weights_destroy, self._engine.value, self._model.value,
            needs=(self._engine, self._model))
        if saved:
            handle = _Handle(library.hone_plan_open, library.hone_plan_destroy, self._engine.value, path,
                             needs=self._engine)
            self._saved: Optional[_Plan] = _Plan(handle)
            self._describe_saved(self._saved)
            self._open: List[str] = []
            self._expect()
            self._fixed = self._given_shapes(shapes)
            return
        self._saved = None
        self.inputs: List[Port] = self._ports(library.hone_model_inputs, library.hone_model_input, True)
        self.outputs: List[Port] = self._ports(library.hone_model_outputs, library.hone_model_output, False)
        self._fixed = self._given_shapes(shapes)
        self._open = sorted(p.name for p in self.inputs
                            if p.shape is None or not all(isinstance(n, int) for n in p.shape))
        self._expect()
        if all(p.name in self._fixed or p.shape is not None and all(isinstance(n, int) for n in p.shape)
               for p in self.inputs):
            self._plan({}).users.pop() # its errors now, and the first run as fast as the others

    def _expect(self) -> None:
        """What each run's inputs are compared with."""
        self._wanted_names = set(self._named())
        self._wanted = []
        for port in self.inputs:
            shape = () if port.shape is None else port.shape
            fixed = tuple((i, n) for i, n in enumerate(shape) if isinstance(n, int))
            self._wanted.append((port.name, port, plain_dtype(port.code), -1 if port.shape is None else len(shape), fixed))

    def _load(self, model: Any, path: Optional[bytes]) -> _Handle:
        if path is None:
            return _Handle(library.hone_model_load_memory, library.hone_model_release, model, len(model), None,
                           needs=model)
        if path.startswith(b"zoo:"):
            return _Handle(library.hone_zoo_build, library.hone_model_release, path[4:], c.byref(lib.ZooOptions()))
        return _Handle(library.hone_model_load, library.hone_model_release, path)

    def _ports(self, count: Any, at: Any, given: bool) -> List[Port]:
        ports, port = [], lib.Port()
        for i in range(count(self._model.value)):
            at(self._model.value, i, c.byref(port))
            if not (given and port.optional): # an input with an initializer is a constant
                ports.append(Port(lib.text(port.name), dtype_name(port.desc.dtype), _shape(port.desc, port.symbol),
                                  port.desc.dtype))
        return ports

    def _describe_saved(self, plan: _Plan) -> None:
        def ports(names: List[str], desc: Any) -> List[Port]:
            descs = [desc(plan.handle.value, i).contents for i in range(len(names))]
            return [Port(name, dtype_name(d.dtype), _shape(d), d.dtype) for name, d in zip(names, descs)]
        self.inputs = ports(plan.inputs, library.hone_plan_input_desc)
        self.outputs = ports(plan.outputs, library.hone_plan_output_desc)

    def _given_shapes(self, shapes: Optional[Mapping[str, Sequence[int]]]) -> Dict[str, Tuple[int, ...]]:
        if shapes is not None and not isinstance(shapes, Mapping):
            raise refusal("shapes", "wrong type", expected="a dict {input: shape}", got=type(shapes).__name__)
        fixed: Dict[str, Tuple[int, ...]] = {}
        for name, dims in (shapes or {}).items():
            port = next((p for p in self.inputs if p.name == name), None)
            if port is None:
                raise refusal("shapes", f"the model has no input {name!r}", hint=f"it has {', '.join(self._named())}")
            where = f"shapes[{name!r}]"
            if port.code >= lib.SEQUENCE:
                raise refusal(where, f"this input ({port.type}) has no shape")
            if not isinstance(dims, (tuple, list)) and not (isinstance(dims, np.ndarray) and dims.ndim == 1):
                raise refusal(where, "wrong type", expected="a tuple of numbers", got=repr(dims))
            fixed[name] = tuple(_whole(where, n, 0) for n in dims)
            if len(fixed[name]) > lib.MAX_RANK:
                raise refusal(where, "too many dimensions", expected=f"at most {lib.MAX_RANK}", got=str(len(fixed[name])))
            if not _fits(port, fixed[name]):
                raise refusal(where, "the model fixes another shape", expected=_wanted(port), got=_by(fixed[name]))
        return fixed

    def close(self) -> None:
        """Gives back the model and its plans. Runs on other threads end as usual, and results stay valid, also those
        without a copy. A second call does nothing."""
        with self._lock:
            self._closed = True
            self._plans.clear()
            self._saved = self._weights = self._model = self._engine = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        def ports(all_of: List[Port]) -> str:
            return ", ".join(f"{p.name}: {_wanted(p)}" for p in all_of)
        end = ", closed" if self._closed else ""
        return f"<hone.Session {self._name!r} on {self._device}{end}: ({ports(self.inputs)}) -> ({ports(self.outputs)})>"

    def __reduce__(self) -> Any:
        raise TypeError("a hone.Session is neither pickled nor copied: make one from its file in every process")

    def _named(self) -> List[str]:
        return [p.name for p in self.inputs]

    @property
    def precision(self) -> str:
        """Arithmetic of the last plan: "f32", "bf16", "fp16" or "tf32"; "" before the first one."""
        with self._lock:
            plan = self._saved or next(reversed(self._plans.values()), None)
        return lib.text(library.hone_plan_precision(plan.handle.value)) if plan else ""

    def _plan(self, shapes: Mapping[str, Tuple[int, ...]]) -> _Plan:
        # Shapes that the model itself fixes are no matter of bindings: a wrong one is refused by the run.
        key = tuple([shapes[name] if name in shapes else self._fixed.get(name) for name in self._open])
        with self._lock:
            if self._closed:
                raise refusal("", "the session is closed")
            plan = self._saved or self._plans.get(key)
            if plan is None:
                self._missed += 1
                plan = self._moved(key) or self._make(key)
                self._plans[key] = plan
                while len(self._plans) > PLANS:
                    self._plans.popitem(last=False)
            else:
                self._missed = 0
            if not self._saved:
                self._plans.move_to_end(key)
            plan.users.append(None)
            return plan

    def _moved(self, key: Any) -> Optional[_Plan]:
        """A plan that was not used for longest (where shapes have been new for long: the last one) as the one for these
        shapes, where that can be. As long as there is room for more, only while all shapes are new, and these have not
        been here."""
        if len(self._plans) < PLANS and (self._missed < 3 or key in self._gone):
            return None
        bindings, count = self._bindings(key)
        # Where shapes only grow, what the last run left in the caches is worth more than older plans.
        last = self._missed > PLANS
        for old in [k for k in (reversed(self._plans) if last else self._plans)]:
            plan = self._plans[old]
            if plan.users:
                continue
            try:
                moved = plan.move(bindings, count)
            except HoneError: # it is nothing any more
                del self._plans[old]
                continue
            if moved:
                del self._plans[old]
                self._gone[old] = None
                while len(self._gone) > 8 * PLANS:
                    self._gone.popitem(last=False)
                return plan
        return None

    def _bindings(self, key: Tuple[Optional[Tuple[int, ...]], ...]) -> Tuple[Any, int]:
        """For the library, and how many: they say so until the next ones are made."""
        ranks = tuple([-1 if dims is None else len(dims) for dims in key])
        if ranks != self._ranks:
            named = [(name.encode(), rank) for name, rank in zip(self._open, ranks) if rank >= 0]
            self._binding = (lib.Binding * max(len(named), 1))()
            for binding, (name, rank) in zip(self._binding, named):
                binding.input, binding.rank = name, rank
            at, size = c.addressof(self._binding) + lib.Binding.dim.offset, c.sizeof(lib.Binding)
            self._bound = [(c.c_int64 * rank).from_address(at + i * size) for i, (_, rank) in enumerate(named)]
            self._ranks = ranks
        for place, dims in zip(self._bound, [dims for dims in key if dims is not None]):
            place[:] = dims
        return self._binding, len(self._bound)

    def _make(self, key: Tuple[Optional[Tuple[int, ...]], ...]) -> _Plan:
        bindings, count = self._bindings(key)
        options = lib.PlanOptions(level=self._level, precision=lib.encoded(self._precision), bindings=bindings,
                                  n_bindings=count, weights=self._weights.value)
        return _Plan(_Handle(library.hone_plan_create, library.hone_plan_destroy, self._engine.value,
                             self._model.value, c.byref(options), needs=(self._engine, self._model, self._weights)))

    def _check_names(self, inputs: Mapping[str, Any]) -> None:
        if inputs.keys() == self._wanted_names:
            return
        names = self._named()
        for name in inputs:
            if name not in names:
                raise refusal("", f"the model has no input {name!r}", hint=f"it has {', '.join(names)}")
        missing = [n for n in names if n not in inputs]
        if missing:
            raise refusal("", f"no value for input {missing[0]!r}", hint=f"the model wants {', '.join(names)}")

    @staticmethod
    def _check_rank(where: str, array: np.ndarray) -> None: # of a model that leaves even the rank open
        if array.ndim > lib.MAX_RANK:
            raise refusal(where, "too many dimensions", expected=f"at most {lib.MAX_RANK}", got=str(array.ndim))

    @staticmethod
    def _check_shape(port: Port, array: np.ndarray) -> None:
        Session._check_rank(port.name, array)
        if port.shape is None or port.code & (lib.SEQUENCE | lib.OPTIONAL):
            return
        if not _fits(port, array.shape):
            raise refusal(port.name, "wrong shape", expected=_wanted(port), got=_by(array.shape))

    def _check_into(self, into: Any, copy: bool) -> None:
        if not isinstance(into, Mapping):
            raise refusal("into", "wrong type", expected="a dict {output: array}", got=type(into).__name__)
        if not copy:
            raise refusal("into", "results in memory of hone's (copy=False) are not written into arrays")
        for name, array in into.items():
            port = next((p for p in self.outputs if p.name == name), None)
            where = f"into[{name!r}]"
            if port is None:
                raise refusal("into", f"the model has no output {name!r}",
                              hint=f"it has {', '.join(p.name for p in self.outputs)}")
            if type(array) is not np.ndarray:
                raise refusal(where, "wrong type", expected="an array", got=type(array).__name__)
            wanted = plain_dtype(port.code)
            if wanted is None:
                raise refusal(where, f"this output ({port.type}) is not written into an array")
            if array.dtype != wanted:
                raise refusal(where, "wrong type", expected=str(wanted), got=str(array.dtype))
            Session._check_rank(where, array)
            if not array.flags.c_contiguous or not array.flags.writeable:
                raise refusal(where, "the array is read-only" if array.flags.c_contiguous else "the array is not contiguous")

    def run(self, inputs: Mapping[str, Any], *, copy: bool = True, max_seconds: float = 0,
            into: Optional[Mapping[str, np.ndarray]] = None) -> Dict[str, Value]:
        """Runs the model once and gives {output: value}.

        inputs       {input: array}, row-major, of the port's type and shape. Contiguous arrays, and tensors of other
                     libraries with DLPack in the processor's memory, are read where they lie. A sequence is a list of
                     arrays, an optional a value or None; strings are arrays of str or bytes
        copy         False: results are read-only arrays on hone's own memory, which is used again when the last one
                     is gone. numpy's arrays offer DLPack: `torch.from_dlpack(result)` copies nothing
        max_seconds  give up after this long; 0: never
        into         {output: array}: these results are written there. Where a cache does not grow (GroupQueryAttention
                     of a past as long as the present) the array may be that of the input, which is then continued in
                     place
        """
        if into is not None:
            self._check_into(into, copy)
        if type(inputs) is not dict and not isinstance(inputs, Mapping):
            raise refusal("inputs", "wrong type", expected="a dict {input: array}", got=type(inputs).__name__,
                          hint=f"the model has {', '.join(self._named()) or 'no inputs'}")
        if type(max_seconds) not in (int, float) and (
                isinstance(max_seconds, bool) or not isinstance(max_seconds, numbers.Real)) or not 0 <= max_seconds < 1e9:
            raise refusal("max_seconds", "wrong value", expected="seconds, or 0 for no limit", got=repr(max_seconds))
        self._check_names(inputs)
        arrays, shapes = {}, {}
        for name, port, dtype, rank, fixed in self._wanted:
            value = inputs[name]
            # Most inputs are what the library reads, which is quickly asked.
            if type(value) is np.ndarray and value.dtype is dtype and value.flags.c_contiguous:
                shape = value.shape
                if rank != len(shape) or fixed and [shape[i] for i, _ in fixed] != [n for _, n in fixed]:
                    self._check_shape(port, value)
                arrays[name], shapes[name] = value, shape
                continue
            if port.code < lib.SEQUENCE:
                value = as_array(name, value, port.code)
            if isinstance(value, np.ndarray):
                self._check_shape(port, value)
                shapes[name] = value.shape
            arrays[name] = value
        lease = _Lease(self._plan(shapes))
        plan, context = lease.plan, lease.context
        kept = [] # as long as the run reads it
        for name, code, dtype, tensor, shape in zip(plan.inputs, plan.codes, plan.types, context.given, context.shapes):
            value = arrays[name]
            if type(value) is np.ndarray and value.shape == shape and (
                    value.dtype is dtype or is_as_wanted(value, code)):
                tensor.data = address(value)
                continue
            given = Given(name, inputs[name], code, None if code >= lib.SEQUENCE else value)
            tensor.desc, tensor.data = given.tensor.desc, given.tensor.data
            context.shapes[plan.inputs.index(name)] = getattr(value, "shape", ())
            kept.append(given)
        # On an accelerator results come to the host by a copy in any case.
        here = copy and self._device == "cpu"
        made = context.bind(plan, self._pool, into or {}) if here else [None] * len(plan.outputs)
        if context.bound and not copy:
            context.unbind()
        options = lib.RunOptions(max_seconds) if max_seconds else None
        context.check(library.hone_context_run(context.value, context.pointers, options, context.error))
        if context.whole:
            return dict(zip(plan.outputs, made))
        context.forget()
        if into:
            made = [array if name not in into else written(library.hone_context_output(context.value, i).contents,
                                                           into[name], here)
                    for i, (name, array) in enumerate(zip(plan.outputs, made))]
        owner = None if copy else lease
        return {name: array if array is not None else
                taken(library.hone_context_output(context.value, i).contents, owner, self._pool)
                for i, (name, array) in enumerate(zip(plan.outputs, made))}
