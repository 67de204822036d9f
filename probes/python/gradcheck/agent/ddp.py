# SPDX-License-Identifier: Apache-2.0
"""Hooks DistributedDataParallel: construction, forward, communication hooks."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .declare import builtin_comm_of, comm_of
from .guard import opaque, unseen

if TYPE_CHECKING:
    from types import ModuleType

    from .core import Agent
    from .model import Comm, Model


def hook_ddp(agent: Agent, module: ModuleType) -> None:
    kind: Any = module.DistributedDataParallel  # type: ignore[attr-defined]
    _hook_construction(agent, kind)
    if hasattr(kind, "_pre_forward"):
        _hook_pre_forward(agent, kind)
    else:
        agent.note("hook missing: DistributedDataParallel._pre_forward; forward is hooked instead")
        _hook_forward(agent, kind)
    _hook_comm(agent, kind, "register_comm_hook", comm_of)
    _hook_comm(agent, kind, "_register_builtin_comm_hook", builtin_comm_of)


def hook_join(agent: Agent, module: ModuleType) -> None:
    """Says of which models ranks may run different numbers of steps; the judge looks for this very
    note."""
    kind: Any = module.Join  # type: ignore[attr-defined]
    original = kind.__enter__

    def note_joined(join: Any) -> None:
        for model in _joined(agent, getattr(join, "_joinables", None)):
            agent.note("join", model)

    noted = agent.shield(note_joined)

    @functools.wraps(original)
    def __enter__(self: Any) -> Any:
        if getattr(self, "_enable", True):
            noted(self)
        return original(self)

    kind.__enter__ = unseen(__enter__)


# None stands for all models: where what is joined cannot be asked.
def _joined(agent: Agent, joinables: Any) -> list[Model | None]:
    if joinables is None:
        return [None]
    joined: list[Model | None] = []
    for joinable in joinables:
        if hasattr(joinable, "param_groups"):
            joined += agent.registry.models_of(joinable)
        elif hasattr(joinable, "require_backward_grad_sync"):
            joined.append(agent.registry.model_of(joinable))
    return joined


def _hook_construction(agent: Agent, kind: Any) -> None:
    original = kind.__init__

    def begins() -> None:
        channel = agent.open()
        if channel is not None:
            channel.enter("construct", *agent.moment())

    def ended(wrapper: Any) -> None:
        model = agent.registry.model_of(wrapper)
        if model.is_supported and agent.channel is not None:
            agent.steps.watch.watch_modules(model)

    shielded_begins, shielded_ended = agent.shield(begins), agent.shield(ended)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        shielded_begins()
        original(self, *args, **kwargs)
        shielded_ended(self)

    kind.__init__ = unseen(__init__)


def _hook_pre_forward(agent: Agent, kind: Any) -> None:
    original = kind._pre_forward
    begins = agent.shield(agent.steps.forward_begins)
    entered = agent.shield(agent.steps.forward_entered)

    @functools.wraps(original)
    def _pre_forward(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        begins(self)
        result = original(self, *inputs, **kwargs)
        entered(self, result)
        return result

    kind._pre_forward = opaque(_pre_forward)


# Buffers are then recorded before the broadcast of this forward.
def _hook_forward(agent: Agent, kind: Any) -> None:
    original = kind.forward
    begins = agent.shield(agent.steps.forward_begins)
    entered = agent.shield(agent.steps.forward_entered)

    @functools.wraps(original)
    def forward(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        begins(self)
        entered(self, (inputs, kwargs))
        return original(self, *inputs, **kwargs)

    kind.forward = unseen(forward)


# The hook is the last argument of both, whatever the others are called.
def _hook_comm(agent: Agent, kind: Any, name: str, read: Any) -> None:
    original = getattr(kind, name, None)
    if original is None:
        agent.note(f"hook missing: DistributedDataParallel.{name}")
        return

    def noted(wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = [*args, *kwargs.values()]
        hook = kwargs.get("hook", kwargs.get("comm_hook_type", given[-1]))
        comm: Comm = read(hook)
        agent.registry.model_of(wrapper).comm = comm

    shielded_noted = agent.shield(noted)

    @functools.wraps(original)
    def register(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        shielded_noted(self, args, kwargs)
        return result

    setattr(kind, name, unseen(register))
