# SPDX-License-Identifier: Apache-2.0
"""Arrays [rows, tokens] of the program, and the files that they are written to by the library."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING, Any

from .library import CaptureError, View
from .tensors import is_plain_type

if TYPE_CHECKING:
    from .channel import Channel
    from .core import Agent

NEW, OLD, MASK, TOKEN_IDS = "new", "old", "mask", "token_ids"
_MAX_TEXT = 1000
_BUDGET = 64 << 20  # bytes of files, a rank


class Unfit(Exception):
    """The arrays cannot be recorded; the text says why."""


def as_array(key: str, tensor: Any, copy: bool) -> Any:
    """On the CPU, of two dimensions, without a graph; its elements are the tensor's own unless
    `copy`. Raises Unfit."""
    torch: Any = sys.modules["torch"]
    if not isinstance(tensor, torch.Tensor) or not is_plain_type(type(tensor)):
        raise Unfit(f"{key} is no tensor, but a {type(tensor).__name__}")
    if tensor.dim() not in (1, 2):
        raise Unfit(f"{key} has {tensor.dim()} dimensions; 1 or 2 are expected")
    with torch.no_grad(), torch.utils._python_dispatch._disable_current_modes():
        array = _typed(torch, key, tensor.detach())
        array = array.to("cpu", copy=copy and array.is_cpu and _shares(array, tensor))
        return array.unsqueeze(0) if array.dim() == 1 else array


def _shares(array: Any, tensor: Any) -> bool:
    return bool(array.data_ptr() == tensor.data_ptr())


def _typed(torch: Any, key: str, tensor: Any) -> Any:
    if key == MASK:
        return tensor.ne(0).to(torch.uint8)
    if key == TOKEN_IDS:
        if tensor.is_floating_point() or tensor.is_complex():
            raise Unfit(f"{key} is of type {tensor.dtype}")
        return tensor.to(torch.int64)
    kinds = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    if tensor.dtype not in kinds:
        raise Unfit(f"{key} is of type {tensor.dtype}")
    return tensor


class ArrayWriter:
    """Files of one rank, until their budget is spent. Requires an open channel."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._left = _BUDGET

    def write(self, name: str, step: int, arrays: dict[str, Any]) -> dict[str, Any]:
        """Fields of the record, which says why where nothing could be written."""
        channel = self._agent.channel
        assert channel is not None
        size = sum(array.numel() * array.element_size() for array in arrays.values())
        if size > self._left:
            return _nothing(f"the budget of {_BUDGET >> 20} MiB a rank is spent")
        keys = sorted(arrays)
        try:
            folder = _folder_of(channel)
            file = _taken_name(folder, f"logp-rank-{channel.world.rank}.step-{step}.{_plain(name)}")
            digest = self._write(channel, os.path.join(folder, file), keys, arrays)
        except (CaptureError, OSError) as error:
            return _nothing(str(error))
        self._left -= size
        return {"file": file, "keys": keys, "bytes": size, "digest": digest}

    def _write(self, channel: Channel, path: str, keys: list[str], arrays: dict[str, Any]) -> str:
        views = [self._agent.reader.fill(View(), arrays[key]) for key in keys]
        packed = (View * len(views))(*views)
        names = (ctypes.c_char_p * len(keys))(*[key.encode() for key in keys])
        out = ctypes.create_string_buffer(33)
        write = channel.free["arrays"]
        channel.check(write(channel.handle, os.fsencode(path), names, packed, len(keys), out))
        return out.value.decode()


def _nothing(why: str) -> dict[str, Any]:
    return {"file": "", "keys": [], "bytes": 0, "text": why[:_MAX_TEXT]}


# Where the front, or who judges a folder of evidence, looks for it.
def _folder_of(channel: Channel) -> str:
    job = channel.job
    folder = job.directory if job.socket else os.path.join(job.evidence, channel.world.name)
    os.makedirs(os.path.join(folder, "payload"), exist_ok=True)
    return folder


def _plain(name: str) -> str:
    kept = [c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name[:40]]
    return "".join(kept) or "-"


# An empty file takes the name: a process of another world may look for one at the same time.
def _taken_name(folder: str, stem: str) -> str:
    name, number = f"payload/{stem}.safetensors", 1
    while True:
        try:
            with open(os.path.join(folder, name), "x"):
                return name
        except FileExistsError:
            number += 1
            name = f"payload/{stem}.{number}.safetensors"
