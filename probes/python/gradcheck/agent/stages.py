# SPDX-License-Identifier: Apache-2.0
"""Writes the stages of a model: every tensor of it, then the mark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .library import (
    AFTER,
    BIG,
    BUFFER,
    FINAL,
    GRAD,
    NEXT_FORWARD,
    PARAM,
    REDUCED,
    START,
    View,
    slot_array,
)
from .model import Entry, Model

if TYPE_CHECKING:
    from .channel import Channel
    from .core import Agent


class Recorder:
    """Requires an open channel and a model that is watched. Raises CaptureError: the stage then
    gets no mark, which is how the front knows."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._slot_arrays: dict[tuple[int, ...], Any] = {}

    @property
    def _channel(self) -> Channel:
        channel = self._agent.channel
        assert channel is not None
        return channel

    # --- parameters and buffers

    def start(self, model: Model) -> None:
        count = self._parameters(model, model.entries, 0, START)
        count += self._ties(model, 0, START) + self._buffers(model, 0, START)
        self._close(model, 0, START, count)

    def weights(self, model: Model) -> None:
        """`start` of a step that follows a recorded one: what its gradients are made at."""
        self._close(model, 0, START, self._parameters(model, model.entries, 0, START))

    def after(self, model: Model, entries: list[Entry]) -> None:
        """Also buffers and tied names, the first time in a step."""
        micro = model.last_micro
        count = self._parameters(model, entries, micro, AFTER)
        if not model.after_done:
            count += self._ties(model, micro, AFTER) + self._buffers(model, micro, AFTER)
        model.after_done.update(id(entry) for entry in entries)
        self._close(model, micro, AFTER, count)

    def next_forward(self, model: Model) -> None:
        if model.source.buffers():
            self._close(model, 0, NEXT_FORWARD, self._buffers(model, 0, NEXT_FORWARD))

    def _parameters(self, model: Model, entries: list[Entry], micro: int, stage: int) -> int:
        for entry in entries:
            self._record(entry, model.step, micro, stage, PARAM, entry.param)
        return len(entries)

    def _ties(self, model: Model, micro: int, stage: int) -> int:
        for tie, owner in model.ties:
            self._record(tie, model.step, micro, stage, PARAM, owner.param)
        return len(model.ties)

    def _buffers(self, model: Model, micro: int, stage: int) -> int:
        channel, fill = self._channel, self._agent.reader.fill
        buffers = model.source.buffers()
        for name, tensor in buffers:
            known = model.buffer_slots.get(name)
            if known is None:
                slot = channel.slot(model.name, name, "", _bytes_of(tensor))
                known = model.buffer_slots[name] = (slot, View())
            slot, view = known
            functions = channel.free if _is_big(tensor) else channel.held
            result = functions["record"](
                channel.handle, slot, model.step, micro, stage, BUFFER, fill(view, tensor), -1, 0
            )
            channel.check(result)
        return len(buffers)

    # --- gradients

    def arrived(self, entry: Entry, gradient: Any) -> None:
        channel = self._channel
        view = self._agent.reader.fill(entry.view, gradient)
        functions = channel.free if entry.big else channel.held
        copy = int(self._agent.job.exact)
        channel.check(functions["local"](channel.handle, entry.slot, view, copy))

    def close_local(self, model: Model) -> None:
        channel = self._channel
        hidden = [entry.name for entry in model.trainable if entry.hook_id is None]
        for entry in model.trainable if hidden else []:
            if entry.hook_id is None:
                view = self._agent.reader.hide(entry.view, entry.param)
                channel.check(channel.held["local"](channel.handle, entry.slot, view, 0))
        slots = self._slots_of(model)
        if slots is not None:
            result = channel.free["close_local"](
                channel.handle, model.step, model.micro, slots, len(slots)
            )
            channel.check(result)
        if hidden:
            self._agent.note(f"no hook on {len(hidden)} of {model.name}, first {hidden[0]}")

    def drop_local(self, model: Model) -> None:
        slots = self._slots_of(model)
        if slots is not None:
            self._channel.held["drop_local"](self._channel.handle, slots, len(slots))

    def _slots_of(self, model: Model) -> Any:
        key = tuple(entry.slot for entry in model.trainable)
        if not key:
            return None
        if key not in self._slot_arrays:
            self._slot_arrays = {**self._slot_arrays, key: slot_array(list(key))}
        return self._slot_arrays[key]

    def reduced(self, model: Model, micro: int, copy: bool) -> None:
        copy = copy and model.copies_fit  # a part of them would cost as much and answer little
        for entry in model.trainable:
            grad = entry.param.grad
            self._record(entry, model.step, micro, REDUCED, GRAD, grad, -1, int(copy))
        self._close(model, micro, REDUCED, len(model.trainable))

    def final(self, model: Model, entries: list[Entry]) -> None:
        moment = (model.step, model.last_micro)
        for entry in entries:
            self._record(entry, *moment, FINAL, GRAD, entry.param.grad, -1)
            entry.final_at = moment
        self._close(model, model.last_micro, FINAL, len(entries))

    def is_empty(self, entry: Entry) -> bool:
        """No gradient, or one of zeros."""
        grad = entry.param.grad
        if grad is None:
            return True
        view = self._agent.reader.fill(entry.view, grad)
        if view.unreadable or view.dtype > 3:
            return False
        return self._channel.held["is_zero"](self._channel.handle, view) == 1

    # --- both

    def _record(
        self,
        entry: Entry,
        step: int,
        micro: int,
        stage: int,
        kind: int,
        tensor: Any,
        requires_grad: int | None = None,
        copy: int = 0,
    ) -> None:
        channel = self._channel
        if requires_grad is None:
            requires_grad = int(tensor.requires_grad)
        view = self._agent.reader.fill(entry.view, tensor)
        record = (channel.free if entry.big else channel.held)["record"]
        result = record(
            channel.handle, entry.slot, step, micro, stage, kind, view, requires_grad, copy
        )
        if result < 0:
            channel.check(result)

    def _close(self, model: Model, micro: int, stage: int, count: int) -> None:
        key = (model.step, micro, stage)
        before = model.marked.get(key)
        if before is None:
            self._channel.mark(model.name, model.step, micro, stage)
        else:
            count += before
            self._channel.mark_again(model.name, model.step, micro, stage, count)
        model.marked[key] = count

    def digest(self, value: list[Any]) -> str:
        """Of tensors, with their shapes and types; empty where none can be read."""
        from ctypes import create_string_buffer
        from hashlib import blake2b

        channel = self._channel
        out = create_string_buffer(33)
        digests: list[str] = []
        for tensor in value:
            view = self._agent.reader.fill(View(), tensor)
            functions = channel.free if _is_big(tensor) else channel.held
            if not view.unreadable and functions["digest"](channel.handle, view, out) == 0:
                digests.append(f"{tuple(tensor.shape)} {tensor.dtype} {out.value.decode()}")
        if not digests:
            return ""
        return blake2b("\n".join(digests).encode(), digest_size=16).hexdigest()


def _bytes_of(tensor: Any) -> int:
    return tensor.numel() * tensor.element_size()


def _is_big(tensor: Any) -> bool:
    return _bytes_of(tensor) > BIG
