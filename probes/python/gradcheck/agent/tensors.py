# SPDX-License-Identifier: Apache-2.0
"""From a torch tensor to the view that the library reads, or to `unreadable`. Runs no operator on
CPU tensors; CUDA tensors are copied to a kept pinned buffer first."""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Iterator, Mapping
from ctypes import addressof
from typing import Any

from .library import DTYPES, OTHER, View, integer_array

_MAX_FORMS = 10_000
_MAX_DENSE = 1 << 28  # bytes of a sparse tensor made dense; a larger one is not read
_MAX_INPUTS = 256
_MAX_DEPTH = 6
# As tuples: the job's Python may be 3.9.
_SCALARS = (str, bytes, int, float, type(None))
_SEQUENCES = (list, tuple)


class Form:
    """Shape, strides and dtype in the library's terms; made once for each combination."""

    __slots__ = (
        "code",
        "dtype",
        "extent",
        "item",
        "nbytes",
        "ndim",
        "packed",
        "shape",
        "sizes",
        "stride",
        "strides",
    )

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.stride, self.dtype = shape, strides, dtype
        self.sizes = integer_array(shape)
        self.strides = integer_array(strides)
        self.ndim = len(shape)
        self.code = DTYPES.get(str(dtype).rpartition(".")[2], OTHER)
        self.item = item = dtype.itemsize
        elements = 1
        last = 0
        for axis, size in enumerate(shape):
            elements *= size
            last += (size - 1) * strides[axis]
        self.nbytes = elements * item
        self.extent = (last + 1) * item if elements else 0  # bytes from the first to the last
        self.packed: Form | None = None  # the same, row-major


class Reader:
    """Fills views. One for the process; views belong to the caller."""

    def __init__(self) -> None:
        self._forms: dict[Any, Form] = {}
        self._plain: dict[type, bool] = {}
        self._pinned: dict[int, Any] = {}  # by thread: uint8 buffer

    def fill(self, view: View, tensor: Any) -> View:
        """None is absent. What must not be read becomes unreadable."""
        if tensor is None:
            view.data = None
            view.unreadable = 0
            return view
        pointer = 0
        form = None
        try:
            if view.dense is not None:
                view.dense = None
            if tensor.is_sparse:
                tensor = view.dense = self._densified(tensor)
            form = self._form_of(view, tensor)
            if form.code != OTHER and self._is_plain(type(tensor)):
                pointer, form = self._elements(tensor, form)
        except Exception:
            pointer = 0  # no storage at hand, whoever says so
        self._place(view, pointer, form)
        return view

    def hide(self, view: View, tensor: Any) -> View:
        """Makes the view unreadable, with the tensor's form."""
        form = None
        try:
            form = self._form_of(view, tensor)
        except Exception:
            form = None
        self._place(view, 0, form)
        view.unreadable = 1
        return view

    @staticmethod
    def _place(view: View, pointer: int, form: Form | None) -> None:
        if form is None:
            view.ndim, view.dtype, view.form = 0, OTHER, None
        elif view.form is not form:
            view.form = form
            view.sizes = addressof(form.sizes)
            view.strides = addressof(form.strides)
            view.ndim = form.ndim
            view.dtype = form.code
        view.data = pointer or None
        view.unreadable = 0 if pointer or (form is not None and form.nbytes == 0) else 1

    def _form_of(self, view: View, tensor: Any) -> Form:
        shape, dtype = tensor.shape, tensor.dtype
        try:
            strides = tensor.stride()
        except Exception:  # sparse tensors have none
            strides = (0,) * len(shape)
        form: Form | None = view.form
        known = form is not None and form.shape == shape and form.stride == strides
        if form is not None and known and form.dtype is dtype:
            return form
        form = self._forms.get((shape, strides, dtype))
        if form is None:
            if len(self._forms) >= _MAX_FORMS:
                self._forms.clear()
            form = self._forms[(shape, strides, dtype)] = Form(shape, strides, dtype)
        return form

    def _is_plain(self, kind: type) -> bool:
        plain = self._plain.get(kind)
        if plain is None:
            plain = self._plain[kind] = is_plain_type(kind)
        return plain

    # The address of the first element and the form that lies there; 0: not to be read.
    def _elements(self, tensor: Any, form: Form) -> tuple[int, Form]:
        torch = sys.modules["torch"]
        if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_neg():
            return 0, form
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor) or tensor.is_conj():
            return 0, form
        if tensor.is_cpu:
            return (tensor.data_ptr() if _holds(tensor, form) else 0), form
        return self._staged(tensor, form) if tensor.is_cuda else (0, form)

    # As agreed on for sparse gradients (evidence.md): measured as what they stand for.
    def _densified(self, tensor: Any) -> Any:
        torch = sys.modules["torch"]
        if tensor.numel() * tensor.dtype.itemsize > _MAX_DENSE:
            return tensor
        with torch.no_grad(), torch.utils._python_dispatch._disable_current_modes():
            return tensor.detach().coalesce().to_dense()

    # Waits for the current stream, where whatever produced the tensor was queued.
    def _staged(self, tensor: Any, form: Form) -> tuple[int, Form]:
        torch = sys.modules["torch"]
        if not _holds(tensor, form) or torch.cuda.is_current_stream_capturing():
            return 0, form
        packed = self._packed(tensor, form)
        if form.nbytes == 0:
            return 0, packed
        with torch.no_grad(), torch.utils._python_dispatch._disable_current_modes():
            buffer = self._buffer(form.nbytes)
            target = buffer[: form.nbytes].view(tensor.dtype).view(tensor.shape)
            target.copy_(tensor.detach())
        return target.data_ptr(), packed

    def _packed(self, tensor: Any, form: Form) -> Form:
        if form.packed is None:
            strides: list[int] = []
            step = 1
            for size in reversed(tensor.shape):
                strides.insert(0, step)
                step *= size
            form.packed = Form(tuple(tensor.shape), tuple(strides), tensor.dtype)
        return form.packed

    def _buffer(self, nbytes: int) -> Any:
        torch = sys.modules["torch"]
        buffer = self._pinned.get(get_ident())
        if buffer is None or buffer.numel() < nbytes:
            buffer = torch.empty(nbytes, dtype=torch.uint8, device="cpu", pin_memory=True)
            self._pinned[get_ident()] = buffer
        return buffer


def _holds(tensor: Any, form: Form) -> bool:
    """False where the storage was resized to nothing, as sharding wrappers do."""
    held = tensor.untyped_storage().nbytes() - tensor.storage_offset() * form.item
    return bool(held >= form.extent)


def is_plain_type(kind: type) -> bool:
    """True for tensors that own ordinary memory: no DTensor, fake tensor or other wrapper."""
    torch = sys.modules["torch"]
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return True
    if not issubclass(kind, torch.Tensor) or hasattr(kind, "__tensor_flatten__"):
        return False
    return kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def is_dtensor(value: Any) -> bool:
    return type(value).__name__ == "DTensor"


def tensors_in(value: Any, depth: int = 0) -> Iterator[Any]:
    """Tensors in nested lists, tuples, mappings and dataclasses, in order."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        yield value
    elif depth >= _MAX_DEPTH or isinstance(value, _SCALARS):
        return
    elif isinstance(value, Mapping):
        for item in list(value.values())[:_MAX_INPUTS]:
            yield from tensors_in(item, depth + 1)
    elif isinstance(value, _SEQUENCES):
        for item in value[:_MAX_INPUTS]:
            yield from tensors_in(item, depth + 1)
    elif hasattr(type(value), "__dataclass_fields__"):
        for name in type(value).__dataclass_fields__:
            yield from tensors_in(getattr(value, name, None), depth + 1)
