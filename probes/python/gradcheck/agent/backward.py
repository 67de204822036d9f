# SPDX-License-Identifier: Apache-2.0
"""Brackets every run of the autograd engine. Backwards nest (checkpointing), also over threads;
only the outermost one is a micro-step."""

from __future__ import annotations

import functools
import sys
from _thread import allocate_lock, get_ident
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .guard import opaque, unseen

if TYPE_CHECKING:
    from types import ModuleType

    from .core import Agent

_ENGINE = "_engine_run_backward"


class Brackets:
    def __init__(self, agent: Agent) -> None:
        self._steps = agent.steps
        self._lock = allocate_lock()
        self._begins = agent.shield(agent.steps.backward_begins)
        self._ends = agent.shield(agent.steps.backward_ends)
        self._overlap = agent.shield(agent.steps.backwards_overlap)
        self._owner = 0  # thread of the outermost one

    def run(self, is_backward: bool, engine: Callable[[], Any], outputs: Any) -> Any:
        return self.backward(engine, outputs) if is_backward else self.grad(engine)

    def backward(self, engine: Callable[[], Any], outputs: Any = ()) -> Any:
        with self._lock:
            self._steps.in_backward += 1
            is_outermost = self._steps.in_backward == 1
            if is_outermost:
                self._owner = get_ident()
        try:
            if is_outermost:
                self._begins(outputs)
            elif get_ident() != self._owner and _is_program_thread():
                self._overlap()
            return engine()
        finally:
            if is_outermost:
                self._ends()
            with self._lock:
                self._steps.in_backward -= 1

    # Its leaf hooks fire, but nothing is added to any gradient.
    def grad(self, engine: Callable[[], Any]) -> Any:
        with self._lock:
            self._steps.in_grad += 1
        try:
            return engine()
        finally:
            with self._lock:
                self._steps.in_grad -= 1


# Nested backwards may run in the engine's own threads, which Python knows as dummies at most.
def _is_program_thread() -> bool:
    thread = sys.modules["threading"]._active.get(get_ident())
    return thread is not None and type(thread).__name__ != "_DummyThread"


unseen_methods = (Brackets.run, Brackets.backward, Brackets.grad)


def hook_graph(agent: Agent, module: ModuleType) -> None:
    """torch.autograd.graph, where both backward() and grad() take the engine from."""
    original = getattr(module, _ENGINE, None)
    if original is None:
        return  # before torch 2.2; hook_autograd looks again
    brackets = _brackets(agent)

    @functools.wraps(original)
    def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
        engine = functools.partial(original, *args, **kwargs)
        outputs = args[0] if args else ()
        return brackets.run(bool(kwargs.get("accumulate_grad")), engine, outputs)

    module._engine_run_backward = opaque(_engine_run_backward)  # type: ignore[attr-defined]


def hook_autograd(agent: Agent, module: ModuleType) -> None:
    hooked = getattr(getattr(module, "graph", None), _ENGINE, None)
    if hasattr(hooked, "__wrapped__"):
        module._engine_run_backward = hooked  # type: ignore[attr-defined]
        return
    agent.note(f"hook missing: torch.autograd.{_ENGINE}; backward and grad are hooked instead")
    brackets = _brackets(agent)
    for name, bracket in (("backward", brackets.backward), ("grad", brackets.grad)):
        setattr(module, name, _bracketed(getattr(module, name), bracket))


def _bracketed(original: Any, bracket: Callable[[Callable[[], Any]], Any]) -> Any:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        import torch

        if torch.compiler.is_compiling():
            return original(*args, **kwargs)
        return bracket(functools.partial(original, *args, **kwargs))

    return unseen(call)


def _brackets(agent: Agent) -> Brackets:
    for method in unseen_methods:
        unseen(method)
    return Brackets(agent)
