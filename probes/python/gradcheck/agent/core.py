# SPDX-License-Identifier: Apache-2.0
"""The agent of this process: what it knows, and its channel once it has one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .callsite import CallSite
from .guard import describe, shielded
from .job import Job, parse
from .registry import Registry
from .stages import Recorder
from .steps import Steps
from .tensors import Reader
from .updates import Updates

if TYPE_CHECKING:
    from collections.abc import Callable

    from .boot import Seen
    from .channel import Channel
    from .ending import End
    from .log_probs import LogProbs
    from .model import Model

_MAX_ERRORS = 5


class Agent:
    """One a process. Its channel opens when the process turns out to train something, never in a
    process that was forked from one whose channel was open."""

    def __init__(self, job: Job, seen: Seen) -> None:
        self.job = job
        self.seen = seen
        self.channel: Channel | None = None
        self.reader = Reader()
        self.sites = CallSite()
        self.registry = Registry(self)
        self.recorder = Recorder(self)
        self.steps = Steps(self)
        self.updates = Updates(self)
        self.log_probs: LogProbs | None = None
        self.end: End | None = None
        self.is_ended = False
        self._pid = os.getpid()
        self._errors = 0
        self._early_notes: list[tuple[str, Model | None]] = []
        self.at_open: list[Callable[[], None]] = []  # called when the channel has opened

    # --- calls from the job

    def shield(self, work: Callable[..., Any]) -> Any:
        return shielded(self.is_on, self.failed, work)

    def is_on(self) -> bool:
        """False for good once the channel has gone, in forked children, and after the end."""
        if self._pid != os.getpid():
            self._start_anew()
        return not self.is_ended and (self.channel is None or self.channel.is_open)

    # In a forked child. One of a process that trained says nothing; one of a launcher may train,
    # but not what the launcher made: a data-loader worker has that too.
    def _start_anew(self) -> None:
        if self.channel is not None:
            self.is_ended = True
            self._watch_for_training()
            return
        self._pid = os.getpid()
        self._early_notes = []
        self.registry = Registry(self)

    # A forked child that trains all the same must not go unnoticed: the front finds the file.
    def _watch_for_training(self) -> None:
        if self.steps.in_backward:
            self.seen.tell("forked")

    def failed(self, error: Exception) -> None:
        self._errors += 1
        if self._errors <= _MAX_ERRORS:
            self.note(f"agent error: {describe(error)}")

    def unhooked(self, name: str, error: Exception) -> None:
        self.note(f"hook missing: {name}: {describe(error)}")

    # --- channel

    def open(self) -> Channel | None:
        """The channel; opens it if need be. None where there is none to be had."""
        if self.channel is None and not self.is_ended:
            try:
                self._connect()
            except Exception as error:
                self.is_ended = True
                self._explain(error)
        return self.channel if self.is_on() else None

    def _connect(self) -> None:
        from .channel import Channel
        from .ending import watch_end
        from .world import find_world, hello, is_child_of_a_rank

        world = find_world()
        if world.is_claimed and is_child_of_a_rank(self.seen.directory):
            self.is_ended = True
            self.seen.tell("helper")
            return
        channel = Channel(self.job, world)
        channel.send(hello(self.job.run, channel.world))
        self.channel = channel
        self.seen.tell("wrapped")
        for text, model in self._early_notes:
            self.note(text, model)
        for call in self.at_open:
            call()
        watch_end(self)

    # The front finds it where it looks for a sign of life.
    def _explain(self, error: Exception) -> None:
        try:
            path = os.path.join(self.seen.directory, f"seen-{os.getpid()}-torch")
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{describe(error)}\n")
        except OSError:
            return

    # --- events

    def note(self, text: str, model: Model | None = None) -> None:
        """Of one model, or of none in particular."""
        if self.channel is None:
            self._early_notes.append((text, model))
            return
        try:
            step, micro = self.moment()
            name = None if model is None else model.name
            self.channel.event("note", step, micro, model=name, text=text)
        except Exception:
            return  # nobody left to tell

    def moment(self) -> tuple[int, int]:
        """Step and micro-step for what concerns no model in particular."""
        for model in self.registry.models:
            if model.is_recording:
                return model.step, model.micro
        models = self.registry.models
        return (models[0].step, models[0].last_micro) if models else (0, 0)


def make(job: str, seen: Seen) -> Agent:
    """Raises what job.parse raises."""
    return Agent(parse(job), seen)
