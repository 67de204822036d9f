# SPDX-License-Identifier: Apache-2.0
"""What the agent knows of a model: its tensors and where it is in its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from .library import View


class Entry:
    """A parameter that may be recorded. Holds it only while the model is watched."""

    __slots__ = (
        "announced",
        "arriving",
        "big",
        "final_at",
        "hook",
        "hook_id",
        "implementation",
        "late_id",
        "model",
        "name",
        "param",
        "slot",
        "view",
    )

    def __init__(self, model: Model, name: str, param: Any, slot: int, big: bool) -> None:
        self.model = model
        self.name = name
        self.param = param
        self.slot = slot
        self.big = big
        self.view = View()
        self.hook: Callable[[Any], None] | None = None
        self.hook_id: int | None = None
        self.late_id: int | None = None  # of the hook behind the program's own, where there is one
        self.arriving: Any = None  # between the two hooks: the gradient, and what was there before
        self.implementation = 0  # address of the C++ tensor that the hook lies on
        self.announced = False  # that it holds nothing: since then nothing arrived
        self.final_at = (-1, -1)  # step, micro


class Source:
    """Where a model's tensors come from, asked anew at every checked step. Keeps no parameter
    alive and no weak reference to one (swap_tensors refuses tensors that have any)."""

    def module(self) -> Any:
        return None

    def is_gone(self) -> bool:
        raise NotImplementedError

    def parameters(self) -> list[tuple[str, Any]]:
        """By name, tied ones once for each name."""
        raise NotImplementedError

    def buffers(self) -> list[tuple[str, Any]]:
        return []


class ModuleSource(Source):
    def __init__(self, module: Any) -> None:
        self._module = ref(module)

    def module(self) -> Any:
        return self._module()

    def is_gone(self) -> bool:
        return self._module() is None

    def parameters(self) -> list[tuple[str, Any]]:
        module = self._module()
        if module is None:
            return []
        named = module.named_parameters(remove_duplicate=False)
        return [(clean(name), parameter) for name, parameter in named]

    def buffers(self) -> list[tuple[str, Any]]:
        module = self._module()
        return [] if module is None else [(clean(n), b) for n, b in module.named_buffers()]


class LooseSource(Source):
    """Parameters of an optimizer that belong to no module."""

    def __init__(self, optimizer: Any, is_owned: Callable[[Any], bool]) -> None:
        self._optimizer = ref(optimizer)
        self._is_owned = is_owned

    def is_gone(self) -> bool:
        return self._optimizer() is None

    def parameters(self) -> list[tuple[str, Any]]:
        optimizer = self._optimizer()
        if optimizer is None:
            return []
        return [
            (f"group{g}.{i}", parameter)
            for g, group in enumerate(optimizer.param_groups)
            for i, parameter in enumerate(group["params"])
            if not self._is_owned(parameter)
        ]


def clean(name: str) -> str:
    """Without what torch.compile puts into names."""
    return name.replace("_orig_mod.", "")


class Comm:
    """What a DDP communication hook does to gradients, as far as its name tells."""

    def __init__(self, hook: str = "", reduce: str = "mean", wire_dtype: str = "") -> None:
        self.hook = hook
        self.reduce = reduce
        self.wire_dtype = wire_dtype


class Model:
    """A model and its place in time. `step` is the open step, or the one that ended last; a step
    opens when a forward or backward concerns the model and ends when an optimizer stepped."""

    def __init__(self, name: str, source: Source, wrapper: Any = None) -> None:
        self.name = name
        self.source = source
        self._wrapper = None if wrapper is None else ref(wrapper)
        self.kind = "" if wrapper is None else "ddp"  # or an unsupported wrapper's
        self.is_supported = True
        self.comm = Comm()

        self.step = 0
        self.micro = 0  # backwards of this step so far
        self.is_open = False
        self.has_stepped = False  # since the step opened
        self.is_due = True  # the open step, or the next one, is checked
        self.is_checked = False  # the open step, or the last one, is
        self.checked_steps = 0
        self.is_declared = False

        self.entries: list[Entry] = []  # owners, while watched
        self.ties: list[tuple[Entry, Entry]] = []  # tied name, its owner
        self.by_id: dict[int, Entry] = {}
        self.trainable: list[Entry] = []
        self.buffer_slots: dict[str, tuple[int, View]] = {}

        self.has_start = False  # of the open step it was recorded when it opened
        self.versions = 0  # of what is trained, summed up, at the first backward of the step
        self.has_moved = False  # between two backwards of one step; was noted
        self.copies_fit = True  # of one step, into what may be kept
        self.clears = 0  # in the open step, after its first backward
        self.is_reached = False  # by the running backward
        self.was_reached = False  # by any backward
        self.is_armed = False  # by a wrapper forward since the last backward that reached it
        self.under_no_sync: bool | None = None  # the last such forward
        self.has_batch = False  # its digest was sent for this micro-step
        self.pending: int | None = None  # micro whose `reduced` is still to be recorded
        self.next_forward_due = False
        self.has_own_hooks = False  # was noted
        self.is_rewritten = False  # by post-accumulate hooks; was noted
        self.inner_forwards = 0
        self.inner_depth = 0
        self.shared_finals: dict[int, str] = {}  # digests, by id of entries that optimizers share
        self.stepped_by: list[int] = []  # ids of optimizers that took this step
        self.after_done: set[int] = set()  # ids of entries recorded at `after`
        self.waited_at = -1  # the last step at whose end the front was waited for
        self.marked: dict[tuple[int, int, int], int] = {}  # step, micro, stage → tensors

    @property
    def wrapper(self) -> Any:
        return None if self._wrapper is None else self._wrapper()

    @property
    def is_gone(self) -> bool:
        return self.source.is_gone() or (self._wrapper is not None and self._wrapper() is None)

    @property
    def is_recording(self) -> bool:
        return self.is_open and self.is_checked and self.is_supported

    @property
    def last_micro(self) -> int:
        return max(0, self.micro - 1)

    def names_of(self, entries: list[Entry]) -> str | list[str]:
        """As events carry them: the word `all` where it is all that can be trained."""
        if len(entries) >= len(self.trainable):
            return "all"
        return [entry.name for entry in entries]
