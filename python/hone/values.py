"""Values of Python as values of the library, and back.

numpy's arrays are handed over as they are when they are contiguous and in the machine's byte order; others are copied
once. What offers DLPack (`__dlpack__`: tensors of PyTorch, JAX, CuPy...) in the processor's memory counts as an array.
A sequence is a list of arrays (or maps), an optional is a value or None, a map is a dict.
"""

from __future__ import annotations

import ctypes as c
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np

from ._library import MAP_I64, MAP_STRING, MAX_RANK, OPTIONAL, SEQUENCE, Desc, Items, Tensor, library, text
from .errors import refusal

Value = Union[np.ndarray, List["Value"], Dict[Any, Any], None]
_MAP = MAP_I64 | MAP_STRING
_INSIDE = SEQUENCE | OPTIONAL | _MAP # not a tensor

STRING = 8
_NUMPY = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
          10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"}
# These are types of the package ml_dtypes; an element has a byte, but for bfloat16.
_ML = {16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
       21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
       27: "float6_e2m3fn", 28: "float6_e3m2fn"}
# hone has the value in the byte, ml_dtypes only its lowest bits: these are always copied.
_SIGN_EXTENDED = (22, 26)
_TYPES = {code: np.dtype(name) for code, name in _NUMPY.items()}
_CODES = {name: code for code, name in {**_NUMPY, **_ML}.items()}
_KNOWN: Dict[np.dtype, int] = {} # codes of types that were looked up: numpy makes their names anew each time


def dtype_name(code: int) -> str:
    """hone's name of a type: "f32", "i64", "seq f32"..."""
    return text(library.hone_dtype_name(code))


def numpy_dtype(code: int) -> np.dtype:
    """numpy's type of hone's: `object` (of str) for strings."""
    if code == STRING:
        return np.dtype(object)
    if code in _TYPES:
        return _TYPES[code]
    if code not in _ML:
        raise refusal("", f"{dtype_name(code)} has no type in numpy")
    try:
        import ml_dtypes
    except ImportError:
        raise refusal("", f"numpy has no type {_ML[code]} of its own", hint="pip install ml_dtypes") from None
    if not hasattr(ml_dtypes, _ML[code]):
        raise refusal("", f"this version of ml_dtypes has no type {_ML[code]}",
                      hint="pip install --upgrade ml_dtypes")
    return np.dtype(getattr(ml_dtypes, _ML[code]))


def as_array(name: str, value: Any, code: int = 0) -> np.ndarray:
    """value as a row-major array in the machine's byte order, without a copy where it is one already."""
    if not isinstance(value, np.ndarray):
        if value is None:
            raise refusal(name, "there is no value", expected="an array", got="None")
        if isinstance(value, np.generic) or not hasattr(value, "__dlpack__"):
            try:
                # numpy would make texts of whatever stands beside a text.
                value = np.asarray(value, object if code == STRING and not isinstance(value, np.generic) else None)
            except (TypeError, ValueError) as e: # rows of different lengths
                raise refusal(name, f"numpy makes no array of it: {e}") from None
        else:
            try:
                value = np.from_dlpack(value)
            except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as e:
                raise refusal(name, f"this DLPack tensor cannot be read: {e}",
                              hint="it must lie in the processor's memory and must not need a gradient") from None
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    return value if value.flags.c_contiguous else np.ascontiguousarray(value)


def _code(dtype: np.dtype) -> int:
    code = _KNOWN.get(dtype)
    if code is None:
        code = _CODES.get(dtype.name, 0)
        if len(_KNOWN) < 64:
            _KNOWN[dtype] = code
    return code


def plain_dtype(code: int) -> Optional[np.dtype]:
    """numpy's own type object of hone's numbers, which arrays of the type have; None: there is no such."""
    return _TYPES.get(code)


_byte = c.c_char.from_buffer


def address(array: np.ndarray) -> int:
    """Where an array's elements lie."""
    try:
        return c.addressof(_byte(array)) # much quicker than the dict below, and not for all arrays
    except (TypeError, ValueError, NotImplementedError, BufferError): # read-only, empty, of another library's type
        return array.__array_interface__["data"][0]


def is_as_wanted(array: np.ndarray, code: int) -> bool:
    """Whether an array of as_array has the library's numbers of this type."""
    return _code(array.dtype) == code and code not in _SIGN_EXTENDED


class Given:
    """One input: the library's tensor and everything that must live as long as it.

    array  of value, where as_array has made it
    """

    def __init__(self, name: str, value: Any, code: int, array: Optional[np.ndarray] = None) -> None:
        self.tensor = Tensor()
        self._keep: List[Any] = []
        if code & _INSIDE:
            self._items(name, value, code)
        else:
            hint = ".astype({!r}) converts it" if isinstance(value, (np.ndarray, np.generic)) else \
                "numpy.array(value, {!r}) makes one"
            self._array(name, as_array(name, value, code) if array is None else array, code, hint)

    def _items(self, name: str, value: Any, code: int) -> None:
        if code & OPTIONAL: # an optional sequence has both bits
            inside = code & ~OPTIONAL
            members = [] if value is None else [Given(name, value, inside)]
        elif code & _MAP and not code & SEQUENCE:
            if not hasattr(value, "keys"):
                raise refusal(name, "wrong type", expected=f"a dict ({dtype_name(code)})", got=type(value).__name__)
            members = [Given(f"{name}: {what}", _vector(f"{name}: {what}", given, kind), kind) for what, given, kind in
                       (("keys", value.keys(), _key(code)), ("values", value.values(), code & SEQUENCE - 1))]
        else:
            if isinstance(value, (np.ndarray, str, bytes)) or value is None or not hasattr(value, "__iter__"):
                raise refusal(name, "wrong type", expected=f"a list of arrays ({dtype_name(code)})",
                              got=type(value).__name__)
            members = [Given(f"{name}[{i}]", v, code & ~SEQUENCE) for i, v in enumerate(value)]
        pointers = (c.POINTER(Tensor) * max(len(members), 1))(*[c.pointer(m.tensor) for m in members])
        items = Items(len(members), pointers)
        self.tensor.desc = library.hone_desc(code, 0, None)
        self.tensor.data = c.addressof(items)
        self._keep += [members, pointers, items]

    def _array(self, name: str, array: np.ndarray, code: int, hint: str) -> None:
        if array.ndim > MAX_RANK:
            raise refusal(name, "too many dimensions", expected=f"at most {MAX_RANK}", got=str(array.ndim))
        given = STRING if code == STRING and array.dtype.kind in "OUS" else _code(array.dtype)
        if given != code:
            wanted, numbers = numpy_name(code), given and STRING not in (given, code)
            raise refusal(name, "wrong type", expected=wanted, got=str(array.dtype),
                          hint=hint.format(wanted) if numbers else "")
        dims = (c.c_int64 * max(array.ndim, 1))(*array.shape)
        self.tensor.desc = library.hone_desc(code, array.ndim, dims)
        if code == STRING:
            self._strings(name, array)
        else:
            array = array.astype("int8") if code in _SIGN_EXTENDED else array
            self.tensor.data = address(array)
        self._keep.append(array)

    def _strings(self, name: str, array: np.ndarray) -> None:
        values = array.ravel().tolist()
        whole = "".join(values) if set(map(type, values)) <= {str} else None
        # In ASCII a letter is a byte; other texts are encoded one by one, so that their lengths are known.
        encoded = values if whole is not None and whole.isascii() else self._bytes_of(name, array, values)
        joined = whole.encode() if encoded is values else b"".join(encoded)
        strings = np.empty((max(len(values), 1), 2), np.uint64) # of the library's strings: where one is, and its length
        strings[:len(values), 1] = list(map(len, encoded))
        strings[1:len(values), 0] = np.cumsum(strings[:max(len(values) - 1, 0), 1])
        strings[:1, 0] = 0
        bytes_ = np.frombuffer(joined or b"\0", np.uint8)
        strings[:, 0] += np.uint64(address(bytes_))
        self.tensor.data = address(strings)
        self._keep += [bytes_, strings]

    @staticmethod
    def _bytes_of(name: str, array: np.ndarray, values: List[Any]) -> List[bytes]:
        def where(i: int) -> str:
            at = ", ".join(str(k) for k in np.unravel_index(i, array.shape))
            return f"{name}[{at}]" if at else name
        texts: List[bytes] = []
        for i, s in enumerate(values):
            if not isinstance(s, (str, bytes)):
                raise refusal(where(i), "wrong type", expected="str or bytes", got=type(s).__name__)
            try:
                texts.append(s if isinstance(s, bytes) else s.encode("utf-8", "surrogateescape"))
            except UnicodeEncodeError as e:
                raise refusal(where(i), f"this str has no UTF-8: {e.reason}") from None
        return texts


def _key(code: int) -> int:
    return 7 if code & MAP_I64 else STRING


def _vector(name: str, values: Any, code: int) -> np.ndarray:
    dtype, members = numpy_dtype(code), list(values)
    try:
        given = np.array(members).dtype if members and code != STRING else dtype
        array = np.array(members, dtype)
    except (OverflowError, TypeError, ValueError) as e:
        raise refusal(name, f"numpy makes no array of it: {e}") from None
    if given != object and not np.can_cast(given, dtype, "same_kind"): # numpy makes 1 of 1.7 and of "1"
        raise refusal(name, "wrong type", expected=dtype.name, got="str" if given.kind in "US" else given.name)
    return array


def numpy_name(code: int) -> str:
    return "str" if code == STRING else {**_NUMPY, **_ML}.get(code, dtype_name(code))


class _Memory:
    """Bytes of the library's, which an array keeps, and that what they belong to."""

    def __init__(self, data: int, size: int, owner: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (data, False), "shape": (size,), "typestr": "|u1", "version": 3}


class Pool:
    """Memory of large results that are gone, for those of the next runs: the system would clear fresh pages first. As
    much is kept as results had at most."""

    LARGE = 1 << 20 # bytes; smaller memory comes from numpy

    def __init__(self) -> None:
        self._free: List[np.ndarray] = []
        self._bytes, self._most, self._held = 0, 0, 0

    def take(self, count: int) -> np.ndarray:
        size = self.LARGE
        while size * 2 <= count:
            size *= 2
        size = -(-count // (size // 8)) * (size // 8) # eight sizes to each power of two: results grow
        for i in range(len(self._free) - 1, -1, -1):
            try:
                if self._free[i].nbytes == size:
                    room = self._free.pop(i)
                    if room.nbytes == size:
                        self._bytes -= size
                        break
                    self._free.append(room) # another thread was here
            except IndexError:
                pass
        else:
            room = np.empty(size, np.uint8)
        self._held += size
        self._most = max(self._most, self._held)
        return room

    def give(self, room: np.ndarray) -> None:
        self._held -= room.nbytes
        self._free.append(room)
        self._bytes += room.nbytes
        while self._bytes + self._held > self._most and self._free:
            try:
                self._bytes -= self._free.pop(0).nbytes
            except IndexError:
                break


class _Block:
    """Memory of a pool that an array lies in, whose base this is."""

    def __init__(self, pool: Pool, room: np.ndarray, at: int, shape: Tuple[int, ...], dtype: np.dtype) -> None:
        self._pool, self._room = pool, room
        self.__array_interface__ = {"data": (at, False), "shape": shape, "typestr": dtype.str, "version": 3}

    def __del__(self) -> None:
        self._pool.give(self._room)


class Room:
    """What numpy makes an array for before the run: a result of numbers whose shape is known. Large ones begin at a
    line of the cache, as the library's own memory does."""

    LINE, LARGE = 64, 4096 # bytes

    def __init__(self, desc: Desc, dtype: np.dtype, shape: List[int], count: int) -> None:
        self.desc, self.shape, self.dtype = desc, tuple(shape), dtype
        self.bytes = count * dtype.itemsize

    @staticmethod
    def of(desc: Desc, shape: List[int]) -> Optional["Room"]:
        count = 1
        for n in shape:
            count = count * n if n > 0 else 0
        dtype = _TYPES.get(desc.dtype)
        return Room(desc, dtype, shape, count) if desc.rank >= 0 and count and dtype else None

    def make(self, pool: Pool) -> Tuple[np.ndarray, int]:
        """An array, and its address."""
        if self.bytes < self.LARGE:
            array = np.empty(self.shape, self.dtype)
            return array, address(array)
        room = (np.empty(self.bytes + self.LINE, np.uint8) if self.bytes < pool.LARGE else
                pool.take(self.bytes + self.LINE))
        at = address(room)
        skip = -at % self.LINE
        if self.bytes < pool.LARGE:
            return np.ndarray(self.shape, self.dtype, room, skip), at + skip
        # The types of ml_dtypes have no names that an interface knows; their bytes get the meaning afterwards.
        own = self.dtype.isbuiltin == 1
        plain = self.dtype if own else np.dtype(f"V{self.dtype.itemsize}")
        array = np.asarray(_Block(pool, room, at + skip, self.shape, plain))
        return array if own else array.view(self.dtype), at + skip


def described(array: np.ndarray) -> Desc:
    """The library's descriptor of an array of numbers, row-major."""
    dims = (c.c_int64 * max(array.ndim, 1))(*array.shape)
    return library.hone_desc(_code(array.dtype), array.ndim, dims)


def written(tensor: Tensor, array: np.ndarray, there: bool) -> np.ndarray:
    """A result in the array that was given for it, or in the first of its bytes where the shape is another. there: the
    run wrote it."""
    shape = tuple(tensor.desc.dim[:tensor.desc.rank])
    if shape != array.shape:
        count = 1
        for n in shape:
            count *= n
        if count > array.size:
            raise refusal("into", "the array is too small", expected=f"{count} elements", got=f"{array.size} elements")
        array = array.reshape(-1)[:count].reshape(shape)
    if not there:
        array[...] = taken(tensor, None)
    return array


def taken(tensor: Tensor, owner: Optional[Any], pool: Optional[Pool] = None) -> Value:
    """A result. owner None: a copy, a large one in memory of the pool; else an array on the library's memory that keeps
    owner alive."""
    desc = tensor.desc
    code = desc.dtype
    if code & _INSIDE:
        items = c.cast(tensor.data, c.POINTER(Items)).contents
        values = [taken(items.item[i].contents, owner, pool) for i in range(items.count)]
        if code & _MAP and not code & SEQUENCE:
            return dict(zip(*(v.tolist() for v in values)))
        return (values[0] if values else None) if code & OPTIONAL else values
    shape = tuple(desc.dim[:desc.rank])
    count = 1
    for n in shape:
        count *= n
    if code == STRING:
        return _texts(tensor.data, count).reshape(shape)
    dtype = numpy_dtype(code)
    if not count:
        return np.empty(shape, dtype)
    if code in _SIGN_EXTENDED:
        return np.frombuffer((c.c_byte * count).from_address(tensor.data), "int8").astype(dtype).reshape(shape)
    array = np.asarray(_Memory(tensor.data, count * dtype.itemsize, owner)).view(dtype).reshape(shape)
    if owner is None and pool is not None and array.nbytes >= pool.LARGE:
        own = Room(desc, dtype, list(shape), count).make(pool)[0]
        own[...] = array
        return own
    if owner is None:
        return array.copy()
    array.flags.writeable = False
    return array


def _text_decoder() -> Any:
    """str of UTF-8 that lies somewhere: (address, length, what to do with bytes that are none)."""
    function = c.pythonapi.PyUnicode_DecodeUTF8
    function.restype, function.argtypes = c.py_object, [c.c_void_p, c.c_ssize_t, c.c_char_p]
    return function


_decoded = _text_decoder()


class _Decoded(Dict[Tuple[int, int], str]):
    """The text of each place and length: results are often the same few texts."""

    def __missing__(self, where: Tuple[int, int]) -> str:
        value: str = _decoded(*where, b"surrogateescape") if where[1] else ""
        self[where] = value
        return value


def _texts(data: Optional[int], count: int) -> np.ndarray:
    array = np.empty(count, object)
    if not count:
        return array
    strings = np.frombuffer((c.c_uint64 * (2 * count)).from_address(data), np.uint64).reshape(count, 2)
    at, lengths = strings[:, 0], strings[:, 1]
    ends = np.cumsum(lengths)
    size = int(ends[-1])
    places = at.tolist()
    joined = b""
    if count > 1 and size and at[0] and np.array_equal(at[1:], at[0] + ends[:-1]): # one behind the other
        joined = c.string_at(places[0], size)
    elif 0 < size <= min(64 * count, 1 << 24) and 4 * len(set(places)) > count: # many short ones, not the same few
        joined = _joined(at, lengths, ends)
    else:
        few = _few(at, lengths)
        if few is not None:
            return few
    if joined and joined.isascii():
        text_, stops = joined.decode("ascii"), ends.tolist()
        array[:] = [text_[i:j] for i, j in zip([0, *stops], stops)]
    else:
        array[:] = list(map(_Decoded().__getitem__, zip(places, lengths.tolist())))
    return array


def _few(at: np.ndarray, lengths: np.ndarray) -> Optional[np.ndarray]:
    """The texts where each place has one length, as labels have: looked up once. None: not so."""
    places, first, which = np.unique(at, return_index=True, return_inverse=True)
    sizes = lengths[first]
    if not np.array_equal(sizes[which], lengths):
        return None
    texts = np.empty(len(places), object)
    texts[:] = list(map(_Decoded().__getitem__, zip(places.tolist(), sizes.tolist())))
    return texts[which]


def _joined(at: np.ndarray, lengths: np.ndarray, ends: np.ndarray) -> bytes:
    """The bytes of all texts one behind the other, wherever they lie. Nothing between them is read."""
    some = lengths > 0
    at, lengths, ends = at[some], lengths[some], ends[some]
    first = int(at.min())
    span = int((at + lengths).max()) - first
    memory = np.frombuffer((c.c_ubyte * span).from_address(first), np.uint8)
    steps = (at - np.uint64(first) - (ends - lengths)).astype(np.int64) # from a byte's place in the result to its own
    return memory[np.repeat(steps, lengths.astype(np.int64)) + np.arange(int(ends[-1]))].tobytes()
