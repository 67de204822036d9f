# SPDX-License-Identifier: Apache-2.0
"""When a model's step opens, and what is recorded of its forwards and backwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .declare import declare, declare_unsupported
from .leaves import Leaves
from .model import Entry, Model
from .tensors import tensors_in
from .watch import Watch
from .world import find_world

if TYPE_CHECKING:
    from .core import Agent

# Backwards in one step before it is believed that its optimizer cannot be seen.
_MAX_MICROS = 1024
_KEPT_STEPS = 8  # whose gradients the front may still ask for


class Steps:
    """Every method but those that say otherwise expects the agent to be on, and may raise."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._site = ""
        self._overlaps = False
        self.is_active = False  # some model's step is checked, or its next one will be
        self._world_changed = False
        self.in_backward = 0  # depth over all threads
        self.in_grad = 0  # calls of autograd.grad that run
        self.watch = Watch(agent, self.arrived, agent.recorder.arrived, self.inner_forward)
        self._leaves = Leaves(agent)

    def start_anew(self) -> None:
        """In a forked child."""
        self.is_active = False
        self.in_backward = self.in_grad = 0

    @property
    def _models(self) -> list[Model]:
        return self._agent.registry.models

    def event(self, kind: str, model: Model, micro: int, **fields: Any) -> None:
        channel = self._agent.channel
        if channel is not None:
            channel.event(kind, model.step, micro, model=model.name, **fields)

    def refresh_active(self) -> None:
        self.is_active = any(model.is_due for model in self._models)

    # --- opening

    def open(self, model: Model) -> None:
        if model.is_open:
            return
        if model.has_stepped:
            self._agent.updates.finish(model)
            model.step += 1
        was_checked = model.is_checked and model.checked_steps > 0
        model.is_open, model.has_stepped = True, False
        model.micro, model.pending, model.clears = 0, None, 0
        model.is_armed, model.under_no_sync, model.has_batch = False, None, False
        model.stepped_by, model.after_done, model.marked = [], set(), {}
        model.is_checked = model.is_due
        if not model.is_checked:
            if model.entries:
                self.watch.release(model)
            return
        if self._agent.open() is None:
            model.is_checked = False
            return
        try:
            self._begin_recording(model, was_checked)
        except Exception as error:
            self._agent.failed(error)

    def _begin_recording(self, model: Model, was_checked: bool) -> None:
        self.is_active = True
        model.next_forward_due = model.checked_steps > 0
        model.checked_steps += 1
        self._check_world()
        self.watch.enumerate(model)
        self.watch.refresh(model)
        self.watch.watch_modules(model)
        self._forget_copies(model)
        if not model.is_declared:
            declare(self._agent, model)
        model.has_start = not was_checked
        if model.has_start:
            self._agent.recorder.start(model)

    # A channel opens once: what it said of the world must still hold where gradients are recorded.
    def _check_world(self) -> None:
        channel = self._agent.channel
        if channel is None or self._world_changed:
            return
        self._world_changed = find_world()[:3] != channel.world[:3]
        if self._world_changed:
            self._agent.note("not checked: the process group came after recording had begun")

    # Copies of earlier steps are kept while they fit: the front asks once every rank has been
    # through a step, and ranks that are not reduced may be steps apart.
    def _forget_copies(self, model: Model) -> None:
        channel = self._agent.channel
        if channel is None:
            return
        kept = sum(channel.bytes[entry.slot] for entry in model.trainable)
        model.copies_fit = kept <= self._agent.job.keep_bytes
        steps = [m.step for m in self._models if m.checked_steps > 0]
        floor = min([*steps, model.step])
        for _ in range(min(_KEPT_STEPS, self._agent.job.keep_bytes // max(1, kept)) - 1):
            floor = self._agent.job.previous_checked(floor)
        channel.poll()
        channel.free["forget"](channel.handle, floor)

    # --- forwards

    def forward_begins(self, wrapper: Any) -> None:
        """The wrapper is called; its buffers are not yet synchronised."""
        model = self._agent.registry.model_of(wrapper)
        if not model.is_open:
            self.open(model)
        channel = self._agent.channel
        if model.is_recording and channel is not None:
            channel.enter("forward", model.step, model.micro)

    def forward_entered(self, wrapper: Any, inputs: Any) -> None:
        import torch

        model = self._agent.registry.model_of(wrapper)
        no_sync = not wrapper.require_backward_grad_sync
        is_grad = torch.is_grad_enabled()
        if not model.is_recording:
            return
        self.watch.refresh(model)
        armed = is_grad and not no_sync
        if is_grad:
            model.is_armed = model.is_armed or armed
            model.under_no_sync = no_sync
        self.event(
            "wrapper_forward",
            model,
            model.micro,
            armed=armed,
            grad_mode=is_grad,
            no_sync=no_sync,
        )
        if is_grad and wrapper.training:  # an evaluation may well be the same on all ranks
            self._batch(model, inputs)
        if model.next_forward_due:
            model.next_forward_due = False
            self._agent.recorder.next_forward(model)

    def _batch(self, model: Model, inputs: Any) -> None:
        digest = self._agent.recorder.digest(list(tensors_in(inputs)))
        if digest:
            model.has_batch = True
            self.event("batch", model, model.micro, digest=digest)

    def inner_forward(self, model: Model, args: Any, kwargs: Any) -> bool:
        """The bare module, or a direct child, is called. True where that is worth an event."""
        import torch

        kind = sys_ddp()
        inside = kind is not None and kind._active_ddp_module is model.wrapper
        if inside or model.inner_depth or self.in_backward or not torch.is_grad_enabled():
            return False
        self.open(model)
        if not model.is_recording:
            return False
        site = self._agent.sites.find()
        self.event("inner_forward", model, model.micro, grad_mode=True, site=site)
        if not model.has_batch and getattr(model.source.module(), "training", False):
            self._batch(model, (args, kwargs))
        model.inner_forwards += 1
        return True

    # --- backwards

    def resolve(self) -> None:
        if self._agent.registry.is_dirty:
            self._agent.registry.resolve()
            declare_unsupported(self._agent)

    def backward_begins(self, outputs: Any = ()) -> None:
        """The outermost one, of these tensors or edges."""
        agent = self._agent
        self.resolve()
        if agent.channel is not None:
            agent.channel.poll()
        active = False
        for model in self._models:
            model.is_reached = False
            if model.is_due:
                active = self._prepare(model) or active
            elif not model.is_open and model.is_supported:
                self.open(model)
        self.is_active = active
        if not active or agent.channel is None:
            return
        self._site = agent.sites.find()
        if any(model.is_due and (model.micro == 0 or not model.is_open) for model in self._models):
            self._leaves.look(outputs)
        agent.channel.enter("backward", *agent.moment())

    def _prepare(self, model: Model) -> bool:
        if self._agent.open() is None:
            return False
        self.watch.refresh(model)
        return True

    def arrived(self, entry: Entry, gradient: Any) -> None:
        """A leaf hook: what this backward adds to a gradient."""
        if self.in_grad or not self.in_backward:
            return
        model = entry.model
        if not model.is_reached:
            self._reach(model)
        if model.is_recording:
            is_late = self.watch.late.begin(entry, gradient)
            entry.announced = False
            if not is_late:
                self._agent.recorder.arrived(entry, gradient)

    # Before the first gradient of this backward is added.
    def _reach(self, model: Model) -> None:
        model.is_reached = model.was_reached = True
        self.open(model)
        if not model.is_recording:
            return
        self.flush(model, copy=False)
        self._look_at_weights(model)
        cleared = []
        for entry in model.trainable:
            if not entry.announced and self._agent.recorder.is_empty(entry):
                entry.announced = True
                cleared.append(entry)
        if cleared:
            model.clears += model.micro > 0
            self.event("grad_cleared", model, model.micro, names=model.names_of(cleared))

    # Gradients may be made at other weights than the ranks agreed on before, which are put back
    # before anybody looks at them again.
    def _look_at_weights(self, model: Model) -> None:
        versions = sum(entry.param._version for entry in model.trainable)
        if model.micro == 0:
            model.versions = versions
            if not model.has_start:
                self._agent.recorder.weights(model)
        elif versions != model.versions and not model.has_moved:
            model.has_moved = True
            self._agent.note(
                f"weights of {model.name} change between two backwards of one step: whether ranks "
                "agree on them in between is not checked"
            )

    def backwards_overlap(self) -> None:
        """Two threads of the program run backwards at once: nobody knows whose hook fires."""
        self._overlaps = True

    def _give_up_all(self) -> None:
        self._overlaps = False
        for model in self._models:
            if model.is_due:
                self.give_up(model, "several threads run backwards at once")

    def backward_ends(self) -> None:
        if self._overlaps:
            self._give_up_all()
        if not self.is_active:
            return
        for model in self._models:
            if model.is_reached and model.is_recording:
                model.is_reached = False
                try:
                    self._close_backward(model)
                except Exception as error:
                    self._agent.failed(error)
                model.micro += 1
                if model.micro >= _MAX_MICROS:
                    self.give_up(model, f"{_MAX_MICROS} backwards and no optimizer step seen")
        if self._agent.channel is not None:
            self._agent.channel.flush()

    def _close_backward(self, model: Model) -> None:
        wrapper = model.wrapper
        no_sync = model.under_no_sync
        if no_sync is None and wrapper is not None:
            no_sync = not wrapper.require_backward_grad_sync
        armed = model.is_armed if wrapper is not None else None
        self.event("backward", model, model.micro, site=self._site, armed=armed, no_sync=no_sync)
        self._agent.recorder.close_local(model)
        if armed:
            self._agent.recorder.reduced(model, model.micro, copy=True)
        else:
            model.pending = model.micro
        model.is_armed, model.under_no_sync, model.has_batch = False, None, False

    def flush(self, model: Model, copy: bool) -> None:
        """Records `reduced` where no wrapper said when that is."""
        if model.pending is not None and model.is_recording:
            micro, model.pending = model.pending, None
            self._agent.recorder.reduced(model, micro, copy)

    def finish(self) -> None:
        """At the end of the program."""
        self._leaves.finish()

    def give_up(self, model: Model, why: str) -> None:
        """Nothing of this model is recorded from now on."""
        self._agent.note(f"not checked: {model.name}: {why}")
        self.watch.release(model)
        model.is_supported = model.is_due = model.is_checked = False


def sys_ddp() -> Any:
    import sys

    module = sys.modules.get("torch.nn.parallel.distributed")
    return getattr(module, "DistributedDataParallel", None)
