# SPDX-License-Identifier: Apache-2.0
"""Hooks wrappers whose tensors cannot be compared yet, so that this is said and not guessed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .guard import unseen

if TYPE_CHECKING:
    from types import ModuleType

    from .core import Agent


def hook_fsdp(agent: Agent, module: ModuleType) -> None:
    kind: Any = module.FullyShardedDataParallel  # type: ignore[attr-defined]

    def wrapped(wrapper: Any) -> None:
        agent.registry.add_unsupported(wrapper, "fsdp")

    _after_construction(agent, kind, wrapped)


def hook_fully_shard(agent: Agent, module: ModuleType) -> None:
    original = getattr(module, "fully_shard", None)
    if original is None:
        return

    def sharded(value: Any) -> None:
        for root in [value] if hasattr(value, "named_parameters") else value:
            agent.registry.add_unsupported(root, "fsdp2")

    told = agent.shield(sharded)

    @functools.wraps(original)
    def fully_shard(module: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(module, *args, **kwargs)
        told(module)
        return result

    for name, value in vars(original).items():
        setattr(fully_shard, name, value)
    module.fully_shard = unseen(fully_shard)  # type: ignore[attr-defined]


def hook_deepspeed(agent: Agent, module: ModuleType) -> None:
    kind: Any = module.DeepSpeedEngine  # type: ignore[attr-defined]

    def wrapped(engine: Any) -> None:
        agent.registry.add_unsupported(engine.module, "deepspeed")
        for optimizer in (engine.optimizer, getattr(engine, "basic_optimizer", None)):
            if hasattr(optimizer, "param_groups"):
                agent.registry.ignore_optimizer(optimizer)

    _after_construction(agent, kind, wrapped)


def _after_construction(agent: Agent, kind: Any, wrapped: Any) -> None:
    original = kind.__init__
    told = agent.shield(wrapped)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        told(self)

    kind.__init__ = unseen(__init__)
