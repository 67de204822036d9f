# SPDX-License-Identifier: Apache-2.0
"""Hooks GradScaler: by what gradients are divided, and steps that it skips."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .guard import unseen
from .registry import parameters_of

if TYPE_CHECKING:
    from types import ModuleType

    from .core import Agent
    from .model import Model


def hook_scaler(agent: Agent, module: ModuleType) -> None:
    kind: Any = module.GradScaler  # type: ignore[attr-defined]
    hooks = _Hooks(agent)
    _hook_unscale(agent, kind, hooks)
    _hook_step(agent, kind, hooks)


class _Hooks:
    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def _recording(self, optimizer: Any) -> list[Model]:
        return [m for m in self._agent.registry.info(optimizer).models if m.is_recording]

    def unscale_begins(self, scaler: Any, optimizer: Any) -> float | None:
        """The divisor, where somebody wants to know."""
        models = self._recording(optimizer) if scaler.is_enabled() else []
        for model in models:
            self._agent.steps.flush(model, copy=True)
        return float(scaler.get_scale()) if models else None

    def unscaled(self, optimizer: Any, scale: float) -> None:
        mine = {id(parameter) for parameter in parameters_of(optimizer)}
        channel = self._agent.channel
        for model in self._recording(optimizer) if channel is not None else []:
            entries = [entry for entry in model.trainable if id(entry.param) in mine]
            if entries:
                channel.event(
                    "unscale",
                    model.step,
                    model.last_micro,
                    model=model.name,
                    scale=scale,
                    names=model.names_of(entries),
                )

    def calls(self, optimizer: Any) -> int:
        return self._agent.registry.info(optimizer).calls

    def stepped(self, scaler: Any, optimizer: Any, calls: int) -> None:
        if scaler.is_enabled() and self.calls(optimizer) == calls:
            self._agent.updates.step_skipped(optimizer)


def _hook_unscale(agent: Agent, kind: Any, hooks: _Hooks) -> None:
    original = kind.unscale_
    begins, unscaled = agent.shield(hooks.unscale_begins), agent.shield(hooks.unscaled)

    @functools.wraps(original)
    def unscale_(self: Any, optimizer: Any) -> None:
        scale = begins(self, optimizer)
        original(self, optimizer)
        if scale is not None:
            unscaled(optimizer, scale)

    kind.unscale_ = unseen(unscale_)


def _hook_step(agent: Agent, kind: Any, hooks: _Hooks) -> None:
    original = kind.step
    calls, stepped = agent.shield(hooks.calls), agent.shield(hooks.stepped)

    @functools.wraps(original)
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        before = calls(optimizer)
        result = original(self, optimizer, *args, **kwargs)
        if before is not None:
            stepped(self, optimizer, before)
        return result

    kind.step = unseen(step)
