# SPDX-License-Identifier: Apache-2.0
"""Hooks torch.nn.utils' gradient clipping: by which factor gradients were scaled."""

from __future__ import annotations

import functools
import sys
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from .guard import unseen

if TYPE_CHECKING:
    from types import ModuleType

    from .core import Agent
    from .model import Entry, Model


def hook_clip(agent: Agent, module: ModuleType) -> None:
    hooks = _Hooks(agent)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        setattr(module, name, _hooked(agent, name, getattr(module, name), hooks))


def hook_utils(agent: Agent, module: ModuleType) -> None:
    """torch.nn.utils gives a private function of clip_grad, which clip_grad_norm_ uses, a public
    name: only that one is hooked."""
    name = "clip_grads_with_norm_"  # since torch 2.6
    original = getattr(module, name, None)
    if original is not None:
        setattr(module, name, _hooked(agent, name, original, _Hooks(agent)))


def _hooked(agent: Agent, name: str, original: Any, hooks: _Hooks) -> Any:
    begins, ended = agent.shield(hooks.begins), agent.shield(getattr(hooks, name.strip("_")))

    def traced() -> bool:
        agent.note(f"{name} was compiled by torch.compile: by what it scales is not seen")
        return True

    # Dynamo runs this once, while it traces.
    traced._dynamo_marked_constant = True  # type: ignore[attr-defined]

    @functools.wraps(original)
    def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        import torch

        if torch.compiler.is_compiling():
            traced()
            return original(parameters, *args, **kwargs)
        if not agent.steps.is_active:
            return original(parameters, *args, **kwargs)
        kept, parameters = _kept(parameters)
        scaled = begins(kept)
        result = original(parameters, *args, **kwargs)
        if scaled:
            ended(scaled, result, args, kwargs)
        return result

    return unseen(clip)


# What can be read once is read here and passed on as what it was.
def _kept(parameters: Any) -> tuple[list[Any], Any]:
    if isinstance(parameters, sys.modules["torch"].Tensor):
        return [parameters], parameters
    kept = list(parameters)
    if isinstance(parameters, GeneratorType):
        return kept, (parameter for parameter in kept)
    return kept, kept if iter(parameters) is parameters else parameters


class _Hooks:
    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def begins(self, parameters: list[Any]) -> list[tuple[Model, list[Entry]]]:
        """Whose gradients are to be clipped, by model."""
        scaled = []
        for model in self._agent.registry.models:
            if not model.is_recording:
                continue
            found = [model.by_id[id(p)] for p in parameters if id(p) in model.by_id]
            if found:
                self._agent.steps.flush(model, copy=True)
                scaled.append((model, found))
        return scaled

    def clip_grad_norm(self, scaled: Any, result: Any, args: Any, kwargs: Any) -> None:
        max_norm = kwargs.get("max_norm", args[0] if args else 0.0)
        self._say(scaled, result, max_norm)

    def clip_grads_with_norm(self, scaled: Any, result: Any, args: Any, kwargs: Any) -> None:
        max_norm = kwargs.get("max_norm", args[0] if args else 0.0)
        self._say(scaled, kwargs.get("total_norm", args[1] if len(args) > 1 else 0.0), max_norm)

    def clip_grad_value(self, scaled: Any, result: Any, args: Any, kwargs: Any) -> None:
        value = kwargs.get("clip_value", args[0] if args else 0.0)
        for model, _ in scaled:
            self._agent.note(f"gradients of {model.name} were clipped by value {float(value)}")

    def _say(self, scaled: Any, norm: Any, max_norm: Any) -> None:
        channel = self._agent.channel
        for model, entries in scaled if channel is not None else []:
            channel.event(
                "clip",
                model.step,
                model.last_micro,
                model=model.name,
                norm=float(norm),
                max_norm=float(max_norm),
                names=model.names_of([e for e in entries if e.param.requires_grad]),
            )
