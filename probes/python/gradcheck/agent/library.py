# SPDX-License-Identifier: Apache-2.0
"""libgradcheck_capture through ctypes; probes/python/capture/capture.h describes each function."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_double, c_int32, c_int64, c_uint8, c_uint64, c_void_p
from typing import Any

ABI = 2

# Values of gradcheck::Stage, gradcheck::TensorKind and gradcheck::DType.
STAGES = ("start", "local", "reduced", "final", "after", "next_forward")
START, LOCAL, REDUCED, FINAL, AFTER, NEXT_FORWARD = range(6)
PARAM, GRAD, BUFFER = range(3)
DTYPES = {
    "float64": 0,
    "float32": 1,
    "float16": 2,
    "bfloat16": 3,
    "int64": 4,
    "int32": 5,
    "int16": 6,
    "int8": 7,
    "uint8": 8,
    "bool": 9,
    "complex64": 10,
    "complex128": 11,
    "float8_e4m3fn": 12,
    "float8_e5m2": 13,
}
OTHER = 14

# Larger tensors are measured without the GIL; for smaller ones giving it away costs more.
BIG = 1 << 20
LINE_BYTES = 1 << 20


class View(ctypes.Structure):
    """gradcheck_view. `form` is what the four fields in the middle were filled from; `dense` keeps
    what `data` points to, where that is a copy."""

    _fields_ = [
        ("data", c_void_p),
        ("sizes", c_void_p),
        ("strides", c_void_p),
        ("ndim", c_int32),
        ("dtype", c_int32),
        ("unreadable", c_int32),
    ]
    form: Any = None
    dense: Any = None


_VIEW = ctypes.POINTER(View)
_SLOTS = ctypes.POINTER(c_int32)

_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "abi": (c_int32, []),
    "open_socket": (c_void_p, [c_char_p, c_double]),
    "open_file": (c_void_p, [c_char_p]),
    "close": (None, [c_void_p]),
    "error": (c_char_p, [c_void_p]),
    "send": (c_int32, [c_void_p, c_char_p]),
    "bye": (c_int32, [c_void_p, c_int32]),
    "flush": (c_int32, [c_void_p]),
    "slot": (c_int32, [c_void_p, c_char_p, c_char_p, c_char_p]),
    "local": (c_int32, [c_void_p, c_int32, _VIEW, c_int32]),
    "close_local": (c_int32, [c_void_p, c_int64, c_int64, _SLOTS, c_int32]),
    "drop_local": (c_int32, [c_void_p, _SLOTS, c_int32]),
    "record": (
        c_int32,
        [c_void_p, c_int32, c_int64, c_int64, c_int32, c_int32, _VIEW, c_int32, c_int32],
    ),
    "mark": (c_int32, [c_void_p, c_char_p, c_int64, c_int64, c_int32]),
    "keep_budget": (None, [c_void_p, c_uint64]),
    "forget": (None, [c_void_p, c_int64]),
    "payload": (
        c_int32,
        [
            c_void_p,
            c_char_p,
            c_int64,
            c_int64,
            c_int32,
            _SLOTS,
            c_int32,
            c_uint64,
            ctypes.POINTER(c_uint8),
        ],
    ),
    "arrays": (
        c_int32,
        [c_void_p, c_char_p, ctypes.POINTER(c_char_p), _VIEW, c_int32, c_char_p],
    ),
    "digest": (c_int32, [c_void_p, _VIEW, c_char_p]),
    "is_zero": (c_int32, [c_void_p, _VIEW]),
    "receive": (c_int32, [c_void_p, c_double, c_char_p, c_int32]),
    "seconds": (c_double, [c_void_p]),
}


class CaptureError(Exception):
    """A call of the library failed; the text says why."""


class Library:
    """The functions, once released from the GIL (`free`) and once not (`held`)."""

    def __init__(self, path: str) -> None:
        self.free = _bound(ctypes.CDLL(path))
        self.held = _bound(ctypes.PyDLL(path))
        if self.free["abi"]() != ABI:
            raise CaptureError(f"{path} has another ABI")

    def error(self, handle: int | None) -> str:
        return (self.free["error"](handle) or b"").decode("utf-8", "replace")


def _bound(library: ctypes.CDLL) -> dict[str, Any]:
    functions = {}
    for name, (result, arguments) in _FUNCTIONS.items():
        function = library[f"gradcheck_{name}"]
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    return functions


def slot_array(slots: list[int]) -> Any:
    return (c_int32 * len(slots))(*slots)


def integer_array(values: tuple[int, ...]) -> Any:
    return (c_int64 * max(1, len(values)))(*values)


def flag_array(count: int) -> Any:
    return (c_uint8 * count)()
