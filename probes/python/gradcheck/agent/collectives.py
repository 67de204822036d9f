# SPDX-License-Identifier: Apache-2.0
"""Hooks torch.distributed's Python-level collectives: which gradients a program reduces itself."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .guard import unseen
from .tensors import tensors_in
from .world import group_name, ranks_of

if TYPE_CHECKING:
    from types import ModuleType

    from .core import Agent
    from .model import Entry

_COLLECTIVES = (
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
)
_REDUCES = {"all_reduce", "all_reduce_coalesced", "reduce", "reduce_scatter"}
_REDUCES |= {"reduce_scatter_tensor"}
_OPS = {"AVG": "mean", "PREMUL_SUM": "sum", "PRODUCT": "product"}


def hook_collectives(agent: Agent, module: ModuleType) -> None:
    """torch.distributed copies the names from this module later, hooked."""
    told = agent.shield(_Teller(agent).tell)
    nesting = _Nesting()
    for name in _COLLECTIVES:
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _hooked(agent, name, original, told, nesting))


class _Nesting:
    """A collective may be made of others: the one that the program called counts."""

    depth = 0


def _hooked(agent: Agent, name: str, original: Any, told: Any, nesting: _Nesting) -> Any:
    steps = agent.steps

    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        import torch

        if torch.compiler.is_compiling() or not steps.is_active or nesting.depth:
            return original(*args, **kwargs)
        told(name, args, kwargs)
        nesting.depth += 1
        try:
            return original(*args, **kwargs)
        finally:
            nesting.depth -= 1

    return unseen(collective)


class _Teller:
    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def tell(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        agent, channel = self._agent, self._agent.channel
        if channel is None or not any(m.is_recording for m in agent.registry.models):
            return
        tensors = list(tensors_in([args, list(kwargs.values())]))
        touched = self._touched(tensors)
        fields: dict[str, Any] = {
            "op": name,
            "group": _group(args, kwargs, channel.world.size),
            "bytes": sum(t.numel() * t.element_size() for t in tensors),
            "dtype": _dtype(tensors),
            "reduce": _reduction(args, kwargs) if name in _REDUCES else "",
        }
        if not touched:
            return channel.event("collective", *agent.moment(), **fields)
        for model in {id(entry.model): entry.model for entry in touched}.values():
            entries = [entry for entry in touched if entry.model is model]
            names = model.names_of(entries)
            micro = model.last_micro
            channel.event("collective", model.step, micro, model=model.name, names=names, **fields)
        return None

    def _touched(self, tensors: list[Any]) -> list[Entry]:
        """Parameters whose gradients lie in these tensors' memory."""
        ranges = [span for span in map(_span, tensors) if span is not None]
        found = []
        for model in self._agent.registry.models:
            for entry in model.trainable if model.is_recording else []:
                span = None if entry.param.grad is None else _span(entry.param.grad)
                if span is not None and any(_overlap(span, other) for other in ranges):
                    found.append(entry)
        return found


def _span(tensor: Any) -> tuple[int, int] | None:
    try:
        start = tensor.data_ptr()
    except Exception:
        return None
    return (start, start + tensor.numel() * tensor.element_size()) if start else None


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _group(args: tuple[Any, ...], kwargs: dict[str, Any], size: int) -> str:
    from torch.distributed import ProcessGroup

    group = kwargs.get("group")
    for value in args:
        if isinstance(value, ProcessGroup):
            group = value
    try:
        return group_name(ranks_of(group), size)
    except Exception:
        return ""  # of a group that this rank is no member of


def _reduction(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    from torch.distributed import ReduceOp

    op = kwargs.get("op", ReduceOp.SUM)
    for value in args:
        if type(value).__name__ in ("RedOpType", "ReduceOp"):
            op = value
    name = str(getattr(op, "op", op)).rpartition(".")[2]
    return _OPS.get(name, name.lower())


def _dtype(tensors: list[Any]) -> str:
    names = {
        "bfloat16": "bf16",
        "float16": "f16",
        "float32": "f32",
        "float64": "f64",
        "int32": "i32",
        "int64": "i64",
        "uint8": "u8",
    }
    name = str(tensors[0].dtype).rpartition(".")[2] if tensors else ""
    return names.get(name, name)
