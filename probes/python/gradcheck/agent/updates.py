# SPDX-License-Identifier: Apache-2.0
"""What is recorded of optimizer steps, with which a model's step ends."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from .model import Entry, Model
from .registry import parameters_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .channel import Channel
    from .core import Agent


class Updates:
    """Every method expects the agent to be on, and may raise."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._first: Model | None = None  # the model that stepped first
        self._is_done = False  # step_done was sent
        self._waits = agent.job.exact  # for the front at the end of a checked step
        self.count = 0  # optimizer steps of this process

    def start_anew(self) -> None:
        """In a forked child."""
        self._first = None

    def step_begins(self, optimizer: Any, has_closure: bool) -> bool:
        """True where the closure is to be watched."""
        self.count += 1
        agent = self._agent
        agent.steps.resolve()
        info = agent.registry.info(optimizer)
        info.calls += 1
        if agent.channel is not None:
            agent.channel.poll()
        watched = False
        for model in info.models:
            self._open_unreached(model, has_closure)
            if agent.steps.in_backward and model.is_due:
                agent.steps.give_up(model, "an optimizer stepped inside a backward")
            # A closure may be the first to run the model's forward.
            watched = watched or model.is_due
            if not self._is_concerned(model) or not model.is_checked:
                continue
            if agent.channel is not None:
                agent.channel.enter("optimizer", model.step, model.last_micro)
            if not has_closure and not _found_inf(optimizer):
                self._try(self.take_final, model, optimizer)
        return watched

    # What cannot be recorded of one model must not keep another one, or this one's next step, from
    # being recorded.
    def _try(self, record: Callable[..., None], *arguments: Any) -> None:
        try:
            record(*arguments)
        except Exception as error:
            self._agent.failed(error)

    # Gradients may come from elsewhere (torch.func, by hand): then no backward ever opens a step.
    def _open_unreached(self, model: Model, has_closure: bool) -> None:
        if model.was_reached or model.is_open or has_closure or not model.is_supported:
            return
        parameters = [parameter for _, parameter in model.source.parameters()]
        if any(parameter.grad is not None for parameter in parameters):
            self._agent.steps.open(model)

    def _is_concerned(self, model: Model) -> bool:
        return model.is_supported and (model.is_open or model.has_stepped)

    def closure_ended(self, optimizer: Any) -> None:
        for model in self._agent.registry.info(optimizer).models:
            if model.is_recording:
                self._try(self.take_final, model, optimizer)

    def take_final(self, model: Model, optimizer: Any) -> None:
        self._agent.steps.flush(model, copy=True)
        moment = (model.step, model.last_micro)
        entries = [e for e in self._share(model, optimizer) if e.param.requires_grad]
        again = [entry for entry in entries if entry.final_at == moment]
        entries = [entry for entry in entries if entry.final_at != moment]
        self._compare_shared(model, again)
        if entries and not self._is_untouched(model):
            self._agent.recorder.final(model, entries)
            self._remember_shared(model, entries)

    # `final` is what the first optimizer takes. A second one that holds the same parameter should
    # find the same gradient.
    def _remember_shared(self, model: Model, entries: list[Entry]) -> None:
        holders: Counter[int] = Counter()
        for optimizer, info in self._agent.registry.optimizers.items():
            if model in info.models and not info.is_ignored:
                holders.update(id(parameter) for parameter in parameters_of(optimizer))
        digest = self._agent.recorder.digest
        model.shared_finals = {
            id(entry): digest([entry.param.grad])
            for entry in entries
            if holders[id(entry.param)] > 1 and entry.param.grad is not None
        }

    def _compare_shared(self, model: Model, entries: list[Entry]) -> None:
        known, digest = model.shared_finals, self._agent.recorder.digest
        changed = [
            entry.name
            for entry in entries
            if entry.param.grad is not None
            and known.get(id(entry), "") not in ("", digest([entry.param.grad]))
            and not self._agent.recorder.is_empty(entry)
        ]
        if changed:
            self._agent.note(
                f"not checked: {model.name}: {len(changed)} gradients were changed between two "
                f"optimizers that take them, first {changed[0]}"
            )

    # No backward reached it and it holds no gradient: this step is another model's.
    @staticmethod
    def _is_untouched(model: Model) -> bool:
        return model.micro == 0 and all(entry.param.grad is None for entry in model.trainable)

    # What this optimizer takes, and what no other one does.
    def _share(self, model: Model, optimizer: Any) -> list[Entry]:
        mine = {id(parameter) for parameter in parameters_of(optimizer)}
        others: set[int] = set()
        for other, info in self._agent.registry.optimizers.items():
            if other is not optimizer and model in info.models:
                others.update(id(parameter) for parameter in parameters_of(other))
        others -= mine
        return [entry for entry in model.entries if id(entry.param) not in others]

    def step_ends(self, optimizer: Any) -> None:
        models = self._agent.registry.info(optimizer).models
        # Asking a device waits for it: only where somebody wants to know.
        skipped = any(model.is_checked for model in models) and _found_inf(optimizer)
        for model in models:
            if self._is_concerned(model):
                self._end(model, optimizer, skipped)

    def step_skipped(self, optimizer: Any) -> None:
        """A gradient scaler did not call the optimizer."""
        for model in self._agent.registry.info(optimizer).models:
            if model.is_open and model.is_supported:
                self._end(model, optimizer, skipped=True)

    def _end(self, model: Model, optimizer: Any, skipped: bool) -> None:
        records = model.is_checked and bool(model.entries)
        if records and model.is_open and self._is_untouched(model):
            return
        if records:
            self._try(self._record_end, model, optimizer, skipped)
        model.stepped_by.append(id(optimizer))
        if model.is_open:
            self._close(model)
        if records and self._agent.channel is not None:
            self._agent.channel.leave(model.step, model.last_micro)
            self._agent.channel.flush()
            self._wait(self._agent.channel, model)

    # With --exact, once a step. Whoever was not answered in time waits no more.
    def _wait(self, channel: Channel, model: Model) -> None:
        is_shared = model.wrapper is not None  # others may be on one rank alone
        if not (self._waits and is_shared and model.after_done) or model.waited_at == model.step:
            return
        model.waited_at = model.step
        if channel.job.socket and not channel.answer_until_go(model.step):
            self._waits = False
            self._agent.note("sync_lost: the front did not answer in time; this rank waits no more")

    def _record_end(self, model: Model, optimizer: Any, skipped: bool) -> None:
        is_again = id(optimizer) in model.stepped_by
        if skipped:
            self._agent.steps.flush(model, copy=False)
        elif not is_again and self._lacks_final(model):
            self.take_final(model, optimizer)  # a closure that was never called
        self._say_stepped(model, optimizer, skipped)
        if skipped or is_again:
            return
        done = model.after_done
        share = [entry for entry in self._share(model, optimizer) if id(entry) not in done]
        if share or not done:
            self._agent.recorder.after(model, share)

    @staticmethod
    def _lacks_final(model: Model) -> bool:
        moment = (model.step, model.last_micro)
        return any(entry.final_at != moment for entry in model.trainable)

    def _say_stepped(self, model: Model, optimizer: Any, skipped: bool) -> None:
        mine = {id(parameter) for parameter in parameters_of(optimizer)}
        taken = [entry for entry in model.trainable if id(entry.param) in mine]
        if taken:
            self._agent.steps.event(
                "optimizer_step",
                model,
                model.last_micro,
                optimizer=type(optimizer).__name__,
                names=model.names_of(taken),
                skipped=skipped,
            )

    def _close(self, model: Model) -> None:
        model.is_open, model.has_stepped = False, True
        job = self._agent.job
        if self._first is None:
            self._first = model
        has_enough = 0 < job.steps <= model.checked_steps
        model.is_due = job.is_checked(model.step + 1) and not has_enough
        if model.is_checked and not model.is_due:
            self._agent.steps.watch.remove_hooks(model)
        self._agent.steps.refresh_active()
        if model is self._first and has_enough and not self._is_done:
            self._is_done = True
            self._agent.steps.event("step_done", model, model.last_micro)

    def finish(self, model: Model) -> None:
        """What the optimizers of this step have left out belongs to `after` too."""
        if not (model.is_checked and model.after_done and model.entries):
            return
        left = [entry for entry in model.entries if id(entry) not in model.after_done]
        if left:
            self._agent.recorder.after(model, left)

    def finish_all(self) -> None:
        """At the end of the program."""
        for model in self._agent.registry.models:
            if model.is_recording and model.step == 0 and model.micro > 0:
                self._agent.note(f"no optimizer step of {model.name} was seen")
            if model.is_recording and model.clears > 0:
                # Cleared for another step, which no hook saw.
                what = f"{model.micro} backwards after the last optimizer step that was seen"
                self._agent.note(f"not checked: {model.name}: {what}")
            if model.is_recording:
                self._agent.steps.flush(model, copy=True)
            if model.has_stepped:
                self.finish(model)


# Fused optimizers ask the scaler's verdict themselves.
def _found_inf(optimizer: Any) -> bool:
    found = getattr(optimizer, "found_inf", None)
    return found is not None and bool(found.item())
