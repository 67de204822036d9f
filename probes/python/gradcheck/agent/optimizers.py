# SPDX-License-Identifier: Apache-2.0
"""Hooks every optimizer: which parameters it holds, and its steps."""

from __future__ import annotations

import functools
import sys
from _thread import get_ident
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from .guard import unseen

if TYPE_CHECKING:
    from types import ModuleType

    from .core import Agent

# Those decorated with _use_grad_for_differentiable, which calls torch._dynamo.graph_break().
_BREAKING = {
    "torch.optim.adadelta",
    "torch.optim.adagrad",
    "torch.optim.adam",
    "torch.optim.adamax",
    "torch.optim.adamw",
    "torch.optim.asgd",
    "torch.optim.nadam",
    "torch.optim.radam",
    "torch.optim.rmsprop",
    "torch.optim.rprop",
    "torch.optim.sgd",
}
_OWN_HOOK = "gradcheck"  # key in an optimizer's own hooks, during one step


def hook_optimizer(agent: Agent, module: ModuleType) -> None:
    kind: Any = module.Optimizer  # type: ignore[attr-defined]
    original = kind.add_param_group
    noted = agent.shield(lambda optimizer: agent.registry.add_optimizer(optimizer))

    @functools.wraps(original)
    def add_param_group(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        noted(self)
        return result

    kind.add_param_group = unseen(add_param_group)
    hooks = StepHooks(agent)
    unseen(StepHooks.before)
    unseen(StepHooks.after)
    module.register_optimizer_step_pre_hook(hooks.before)  # type: ignore[attr-defined]
    module.register_optimizer_step_post_hook(hooks.after)  # type: ignore[attr-defined]


class StepHooks:
    """Steps nest (ZeroRedundancyOptimizer, subclasses that call super().step()): only the outermost
    one counts. It is known by the frame that runs it, because a step that raises tells nobody."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._running: dict[int, list[FrameType]] = {}  # by thread
        self._before = agent.shield(self._before_any)
        self._after = agent.shield(self._after_any)
        self._begins = agent.shield(self._step_begins)
        self._closure_ended = agent.shield(agent.updates.closure_ended)

    # torch.compile may trace these two. Where it can see the whole step, one break more might be an
    # error (fullgraph=True): such a step stays unseen.
    def before(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        import torch

        if torch.compiler.is_compiling():
            if not _breaks_graphs(optimizer):
                return None
            torch._dynamo.graph_break()
        return self._before(sys._getframe(1), optimizer, args, kwargs)

    def after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        import torch

        if torch.compiler.is_compiling():
            if not _breaks_graphs(optimizer):
                return
            torch._dynamo.graph_break()
        self._after(sys._getframe(1), optimizer)

    def _before_any(self, frame: FrameType, optimizer: Any, args: Any, kwargs: Any) -> Any:
        if not self._enter(frame):
            return None
        own = getattr(optimizer, "_optimizer_step_pre_hooks", None)
        if own:  # they may still change gradients, so ours runs after them
            own[_OWN_HOOK] = self._begins
            return None
        return self._step_begins(optimizer, args, kwargs)

    def _after_any(self, frame: FrameType, optimizer: Any) -> None:
        if not self._leave(frame):
            return
        own = getattr(optimizer, "_optimizer_step_pre_hooks", None)
        if own:
            own.pop(_OWN_HOOK, None)
        self._agent.updates.step_ends(optimizer)

    def _enter(self, frame: FrameType) -> bool:
        running = self._running.setdefault(get_ident(), [])
        if running:
            running[:] = [f for f in running if _is_below(f, frame)]
        running.append(frame)
        return len(running) == 1

    def _leave(self, frame: FrameType) -> bool:
        running = self._running.get(get_ident(), [])
        is_outermost = bool(running) and running[0] is frame
        while running and running.pop() is not frame:
            continue
        if not running:
            self._running.pop(get_ident(), None)
        return is_outermost

    def _step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        has_closure = callable(closure)
        if not self._agent.updates.step_begins(optimizer, has_closure) or not has_closure:
            return None
        watched = self._watched(closure, optimizer)
        if "closure" in kwargs:
            return args, {**kwargs, "closure": watched}
        return (args[0], watched, *args[2:]), kwargs

    def _watched(self, closure: Callable[..., Any], optimizer: Any) -> Any:
        ended = self._closure_ended

        def watched_closure(*args: Any, **kwargs: Any) -> Any:
            result = closure(*args, **kwargs)
            ended(optimizer)
            return result

        return unseen(watched_closure)


def _breaks_graphs(optimizer: Any) -> bool:
    """torch's own optimizers break Dynamo's graph in every step."""
    return type(optimizer).__module__ in _BREAKING


def _is_below(frame: FrameType, top: FrameType) -> bool:
    at: FrameType | None = top.f_back
    while at is not None:
        if at is frame:
            return True
        at = at.f_back
    return False
