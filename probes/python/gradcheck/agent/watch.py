# SPDX-License-Identifier: Apache-2.0
"""Places what must lie on a model's own parameters and modules. Leaf hooks go again when a step is
not checked, so that it runs as without the agent."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from .guard import unseen
from .library import BIG
from .model import Entry, Model
from .own_hooks import LateHooks
from .tensors import is_plain_type

if TYPE_CHECKING:
    from .core import Agent

_INNER_FORWARDS = 3
_CALL = "_compiled_call_impl"  # what Module.__call__ prefers; never pickled or copied


class Watch:
    def __init__(
        self,
        agent: Agent,
        arrived: Callable[[Entry, Any], None],
        record: Callable[[Entry, Any], None],
        entered: Callable[..., Any],
    ) -> None:
        self._agent = agent
        self._arrived = agent.shield(arrived)
        self._entered = agent.shield(entered)
        self.late = LateHooks(agent, record)

    # --- parameters

    def refresh(self, model: Model) -> None:
        """Lists the model's parameters if that was not done, and places missing leaf hooks."""
        if not model.entries:
            self.enumerate(model)
        for entry in model.entries:
            if entry.param.requires_grad:
                self._place(entry)
                if entry.hook_id is not None:
                    self.late.place(entry)
        self._list_trainable(model)

    def enumerate(self, model: Model) -> None:
        """Lists the parameters anew; entries of those that are still there stay."""
        known = model.by_id
        model.entries, model.ties, model.by_id = [], [], {}
        for name, parameter in model.source.parameters():
            owner = model.by_id.get(id(parameter))
            if owner is not None:
                model.ties.append((self._entry(model, name, parameter, owner.name), owner))
                continue
            entry = known.pop(id(parameter), None)
            if entry is None or entry.name != name or entry.param is not parameter:
                entry = self._entry(model, name, parameter, "")
            model.entries.append(entry)
            model.by_id[id(parameter)] = entry
        for stale in known.values():
            self._remove(stale)
        self._list_trainable(model)

    def _entry(self, model: Model, name: str, parameter: Any, tied_to: str) -> Entry:
        channel = self._agent.channel
        assert channel is not None
        nbytes = _bytes_of(parameter)
        slot = channel.slot(model.name, name, tied_to, nbytes)
        return Entry(model, name, parameter, slot, nbytes > BIG)

    @staticmethod
    def _list_trainable(model: Model) -> None:
        model.trainable = [entry for entry in model.entries if entry.param.requires_grad]

    # The program's own hooks may replace the gradient: ours must come after them. move_to_end has
    # no effect on what C++ sees.
    def _place(self, entry: Entry) -> None:
        if entry.hook_id is not None and entry.implementation != entry.param._cdata:
            self._remove(entry)  # swap_tensors left the hook behind
        hooks = entry.param._backward_hooks
        if entry.hook_id is not None and hooks is not None and entry.hook_id in hooks:
            if next(reversed(hooks)) != entry.hook_id:
                hook = hooks.pop(entry.hook_id)
                hooks[entry.hook_id] = hook
                self._note_own_hooks(entry)
            return
        if hooks:
            self._note_own_hooks(entry)
        if not is_plain_type(type(entry.param)):
            entry.hook_id = None
            return
        entry.hook = _leaf_hook(self._arrived, entry)
        entry.hook_id = entry.param.register_hook(entry.hook).id
        entry.implementation = entry.param._cdata

    def _note_own_hooks(self, entry: Entry) -> None:
        model = entry.model
        if not model.has_own_hooks:
            model.has_own_hooks = True
            self._agent.note(
                f"{model.name}/{entry.name} has gradient hooks of the program's own; `local` is "
                "what they leave"
            )

    def _remove(self, entry: Entry) -> None:
        self.late.remove(entry)
        hooks = None if entry.param is None else entry.param._backward_hooks
        if hooks is not None and entry.hook_id is not None:
            hooks.pop(entry.hook_id, None)
            if not hooks:
                entry.param._backward_hooks = None  # an empty one costs a call in every backward
        entry.hook_id = entry.hook = None

    def remove_hooks(self, model: Model) -> None:
        for entry in model.entries:
            self._remove(entry)

    def release(self, model: Model) -> None:
        """Forgets the parameters."""
        self.remove_hooks(model)
        for entry in model.entries:
            entry.param = None
        for tie, _ in model.ties:
            tie.param = None
        model.entries, model.ties, model.by_id, model.trainable = [], [], {}, []

    # --- modules

    def watch_modules(self, model: Model) -> None:
        """Lets us know when the bare module, or a direct child, is called; once and for good,
        because taking it away would have torch.compile compile the module again."""
        root = model.source.module()
        if root is None or model.wrapper is None:
            return
        for module in (root, *root.children()):
            if getattr(module, _CALL, self) is None and not _is_scripted(module):
                module.__dict__[_CALL] = _watching(self._entered, ref(model), module)


def _bytes_of(parameter: Any) -> int:
    try:
        return int(parameter.numel() * parameter.element_size())
    except Exception:
        return 0  # an UninitializedParameter


def _is_scripted(module: Any) -> bool:
    return any(kind.__name__ in ("ScriptModule", "GraphModule") for kind in type(module).__mro__)


def _leaf_hook(arrived: Callable[..., None], entry: Entry) -> Any:
    def gradcheck_leaf_hook(gradient: Any) -> None:
        arrived(entry, gradient)

    # Saving a tensor warns of hooks that are lost, unless they say that this is right.
    gradcheck_leaf_hook.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return unseen(gradcheck_leaf_hook)


def _watching(entered: Callable[..., Any], weak: Any, module: Any) -> Any:
    weak_module = ref(module)
    forward = type(module)._call_impl

    @functools.wraps(forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        import torch

        if torch.compiler.is_compiling():
            return forward(weak_module(), *args, **kwargs)
        model = weak()
        is_wanted = model is not None and model.is_due and model.inner_forwards < _INNER_FORWARDS
        if not is_wanted or not entered(model, args, kwargs):
            return forward(weak_module(), *args, **kwargs)
        model.inner_depth += 1
        try:
            return forward(weak_module(), *args, **kwargs)
        finally:
            model.inner_depth -= 1

    return unseen(call)
