# SPDX-License-Identifier: Apache-2.0
"""Gradients that post-accumulate hooks of the program's own rewrite before a wrapper reduces them:
what they leave is the rank's own gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .guard import unseen

if TYPE_CHECKING:
    from collections.abc import Callable

    from .core import Agent
    from .model import Entry


def has_own_hooks(entry: Entry) -> bool:
    """Hooks that are neither ours nor torch's, on a parameter of a wrapped model: elsewhere such
    hooks may reduce the gradient themselves."""
    hooks = getattr(entry.param, "_post_accumulate_grad_hooks", None)
    if not hooks or entry.model.wrapper is None:
        return False
    return any(key != entry.late_id and not _is_of_torch(hook) for key, hook in hooks.items())


def _is_of_torch(hook: Any) -> bool:
    hook = getattr(hook, "func", hook)  # of a partial
    return str(getattr(hook, "__module__", "")).partition(".")[0] == "torch"


class LateHooks:
    """A hook of ours behind all of theirs. Between the leaf hook and this one the gradient that
    arrived and what was there before wait in the entry."""

    def __init__(self, agent: Agent, record: Callable[[Entry, Any], None]) -> None:
        self._agent = agent
        self._record = record
        self._ended = agent.shield(self._end)

    def place(self, entry: Entry) -> None:
        if not has_own_hooks(entry):
            return
        hooks = entry.param._post_accumulate_grad_hooks
        if entry.late_id in hooks:
            hook = hooks.pop(entry.late_id)
            hooks[entry.late_id] = hook  # behind what came later
            return
        ended = self._ended

        def gradcheck_late_hook(parameter: Any) -> None:
            ended(entry)

        entry.late_id = entry.param.register_post_accumulate_grad_hook(
            unseen(gradcheck_late_hook)
        ).id

    @staticmethod
    def remove(entry: Entry) -> None:
        hooks = getattr(entry.param, "_post_accumulate_grad_hooks", None)
        if hooks and entry.late_id is not None:
            hooks.pop(entry.late_id, None)
        entry.late_id = entry.arriving = None

    def begin(self, entry: Entry, gradient: Any) -> bool:
        """A gradient has arrived. True where it is to be recorded later."""
        hooks = getattr(entry.param, "_post_accumulate_grad_hooks", None)
        before = entry.param.grad
        sparse = gradient.is_sparse or (before is not None and before.is_sparse)
        if not hooks or entry.late_id not in hooks or sparse:
            return False
        if before is not None:
            before = None if self._agent.recorder.is_empty(entry) else _computed(before.clone)
        entry.arriving = (gradient, before)
        return True

    def _end(self, entry: Entry) -> None:
        if entry.arriving is None:
            return
        (gradient, before), entry.arriving = entry.arriving, None
        value = entry.param.grad
        if value is None:
            value = gradient  # used up by the hook
        elif before is not None:
            value = _computed(value.sub, before)
        else:
            self._compare(entry, gradient, value)
        self._record(entry, value)

    def _compare(self, entry: Entry, gradient: Any, value: Any) -> None:
        model, digest = entry.model, self._agent.recorder.digest
        if model.is_rewritten or digest([gradient]) == digest([value]):
            return
        model.is_rewritten = True
        self._agent.note(
            f"gradients of {model.name} are rewritten by the program's own post-accumulate hooks; "
            "`local` is what they leave"
        )


# Without what autograd and modes of the program would make of it.
def _computed(operator: Any, *arguments: Any) -> Any:
    import torch

    with torch.no_grad(), torch.utils._python_dispatch._disable_current_modes():
        return operator(*arguments)
