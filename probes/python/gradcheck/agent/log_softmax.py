# SPDX-License-Identifier: Apache-2.0
"""Watches in which precision, and where in the program, log-probs over a vocabulary are made. Only
what goes through torch's Python names is seen: no fused kernel, no rollout in another process."""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from .guard import unseen

if TYPE_CHECKING:
    from types import ModuleType

    from .core import Agent

_MIN_CLASSES = 1000  # fewer are no vocabulary
_MAX_CALLS = 16  # distinct ones that are told, a rank
_DTYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64"}


def hook_functional(agent: Agent, module: ModuleType) -> None:
    """torch.nn.functional, and torch with its tensor type, which are complete by then."""
    watch = _watch_of(agent)
    for name in ("log_softmax", "cross_entropy"):
        watch.hook(module, name)
    torch: Any = sys.modules["torch"]
    for name in ("log_softmax", "logsumexp"):
        watch.hook(torch, name, builtin=f"aten::{name}")
        watch.hook(torch.Tensor, name)


def hook_special(agent: Agent, module: ModuleType) -> None:
    for name in ("log_softmax", "logsumexp"):
        _watch_of(agent).hook(module, name, builtin=f"aten::special_{name}")


def _watch_of(agent: Agent) -> _Watch:
    for watch in agent.at_open:
        if isinstance(watch, _Watch):
            return watch
    watch = _Watch(agent)
    agent.at_open.append(watch)
    return watch


class _Nesting(threading.local):
    """A call may be made of others: the one that the program made counts."""

    depth = 0


class _Watch:
    """Tells each distinct call once. Calling it sends what was seen before the channel opened."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._pid = os.getpid()
        self._seen: set[Any] = set()
        self._early: list[dict[str, Any]] = []
        self.is_early = True  # no step has been recorded yet
        self.is_full = False
        self.nesting = _Nesting()

    def __call__(self) -> None:
        early, self._early = self._early, []
        for fields in early if self._pid == os.getpid() else []:
            self._send((0, 0), fields)

    def hook(self, owner: Any, name: str, builtin: str = "") -> None:
        original = getattr(owner, name, None)
        if original is None:
            return
        call = _hooked(self._agent, self, name, original)
        if builtin:
            call = _overridable(call)
            _tell_jit(call, builtin)
        else:
            # torch.jit compiles what was decorated, with the names that it sees.
            setattr(call, "__script_if_tracing_wrapper", True)
            setattr(call, "__original_fn", original)
        is_module = not isinstance(owner, type)
        call.__module__ = owner.__name__ if is_module else owner.__module__
        call.__qualname__ = name if is_module else f"{owner.__qualname__}.{name}"
        setattr(owner, name, call)

    def tell(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if not self._is_wanted():
            return
        torch: Any = sys.modules["torch"]
        values = args[0] if args else kwargs.get("input", kwargs.get("self"))
        if not isinstance(values, torch.Tensor) or not isinstance(result, torch.Tensor):
            return
        if torch.jit.is_tracing():  # sizes are values of the graph
            return
        classes = _classes(op, values, args, kwargs)
        if classes < _MIN_CLASSES:
            return
        fields = {
            "op": op,
            "dtype": _spelled(values),
            "result_dtype": _spelled(result),
            "grad_mode": torch.is_grad_enabled(),
            "autocast": _is_autocast(torch, values),
            "site": self._agent.sites.find(),
        }
        key = tuple(fields.values())
        if key not in self._seen:
            self._seen.add(key)
            self.is_full = len(self._seen) >= _MAX_CALLS
            self._send(self._agent.moment(), {**fields, "classes": classes})

    # In steps that are checked, and before the first of them.
    def _is_wanted(self) -> bool:
        if self._pid != os.getpid():  # a forked child, which knows nothing of its parent's calls
            self._pid = os.getpid()
            self._seen, self._early = set(), []
        if self.is_early:
            models = self._agent.registry.models
            self.is_early = not any(m.checked_steps > 0 or m.step > 0 for m in models)
        return self.is_early or self._agent.steps.is_active

    def _send(self, moment: tuple[int, int], fields: dict[str, Any]) -> None:
        channel = self._agent.channel
        if channel is None:
            self._early.append(fields)
        else:
            channel.event("log_softmax", *moment, **fields)


def _hooked(agent: Agent, watch: _Watch, op: str, original: Any) -> Any:
    steps, nesting, told = agent.steps, watch.nesting, agent.shield(watch.tell)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not (steps.is_active or watch.is_early) or watch.is_full or nesting.depth:
            return original(*args, **kwargs)
        nesting.depth += 1
        try:
            result = original(*args, **kwargs)
        finally:
            nesting.depth -= 1
        told(op, args, kwargs, result)
        return result

    return unseen(call)


def _overridable(call: Any) -> Any:
    """torch's builtins hand themselves to __torch_function__; programs know them by the name that
    is hooked, so they are handed this function instead."""
    from torch.overrides import handle_torch_function, has_torch_function

    @functools.wraps(call)
    def builtin(*args: Any, **kwargs: Any) -> Any:
        subject = args[:1] or (kwargs.get("input"),)
        if has_torch_function(subject):
            return handle_torch_function(builtin, subject, *args, **kwargs)
        return call(*args, **kwargs)

    return unseen(builtin)


# Its table of builtins is made from the names in torch, once; those in torch.special are not in it.
def _tell_jit(function: Any, operator: str) -> None:
    jit: Any = sys.modules.get("torch.jit._builtins")
    if jit is None:
        return
    jit._builtin_ops.append((function, operator))
    if jit._builtin_table is not None:
        jit._builtin_table[id(function)] = operator


def _classes(op: str, values: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Entries along the dimension that is summed over; 0 where that is not one dimension."""
    shape = values.shape
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if op == "cross_entropy":
        dim = min(1, len(shape) - 1)
    elif dim is None:
        dim = 0 if len(shape) in (0, 1, 3) else 1  # what torch takes, with a warning
    if isinstance(dim, (list, tuple)) and len(dim) == 1:
        dim = dim[0]
    if type(dim) is not int or not shape:
        return 0
    size = shape[dim]
    return size if type(size) is int else 0  # one of a graph that is being made is a symbol


def _spelled(tensor: Any) -> str:
    name = str(tensor.dtype).rpartition(".")[2]
    return _DTYPES.get(name, name)


def _is_autocast(torch: Any, tensor: Any) -> bool:
    try:
        return bool(torch.is_autocast_enabled(tensor.device.type))
    except TypeError:  # before torch 2.4 each device had a function of its own
        is_cpu = tensor.device.type == "cpu"
        return bool(torch.is_autocast_cpu_enabled() if is_cpu else torch.is_autocast_enabled())
