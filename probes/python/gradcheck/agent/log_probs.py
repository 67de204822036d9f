# SPDX-License-Identifier: Apache-2.0
"""Log-probs that the program hands over: written to a file, and told in one record, once new and
old are both there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .arrays import MASK, NEW, OLD, TOKEN_IDS, ArrayWriter, Unfit, as_array
from .guard import unseen
from .origins import Origin, Origins, Place, place_of

if TYPE_CHECKING:
    from types import ModuleType

    from .core import Agent

_KEYS = (NEW, OLD, MASK, "rollout", "ref", "entropy", TOKEN_IDS)
_SOURCE = "gradcheck.log_probs"
_MAX_NAME = 100
_MAX_NAMES = 64  # places of a program


def hook_optim(agent: Agent, module: ModuleType) -> None:
    """torch.optim, without which no program trains. The package `gradcheck` finds the function."""
    log_probs = log_probs_of(agent)
    take = agent.shield(log_probs.take)

    def traced() -> bool:
        agent.note("log_probs was called in compiled code: its arrays are not seen")
        return True

    # Dynamo runs this once, while it traces.
    traced._dynamo_marked_constant = True  # type: ignore[attr-defined]

    def take_log_probs(name: Any, *tensors: Any) -> None:
        import torch

        if torch.compiler.is_compiling():
            traced()
        elif log_probs.is_wanted:
            take(name, tensors)

    package: Any = sys.modules[__name__.partition(".")[0]]
    package.take_log_probs = unseen(take_log_probs)


def log_probs_of(agent: Agent) -> LogProbs:
    """The one of this process."""
    if agent.log_probs is None:
        agent.log_probs = LogProbs(agent)
    return agent.log_probs


class _Waiting:
    """What was handed over under one name before the rest. Holds copies."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}
        self.places: dict[str, Place] = {}
        self.origin = Origin(0, False)  # of old
        self.new_at = 0  # optimizer steps by then

    def has(self, key: str) -> bool:
        return key in self.arrays


class LogProbs:
    """One a process. Every method but `is_wanted` expects the agent to be on, and may raise."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._waiting: dict[str, _Waiting] = {}
        self._origins = Origins()
        self._writer = ArrayWriter(agent)

    @property
    def is_wanted(self) -> bool:
        """All that is done in an unchecked step."""
        if self._agent.steps.is_active or self._agent.updates.count == 0:
            return True
        if self._waiting:
            self._waiting.clear()
        return False

    def moment(self) -> tuple[int, int] | None:
        """Step and micro-step that arrays of this moment belong to; None where it is not checked,
        or nothing is trained."""
        self._agent.steps.resolve()
        for model in self._agent.registry.models:
            if model.is_recording:
                return model.step, model.micro
            if model.is_due and model.is_supported and not model.is_open:
                return model.step + int(model.has_stepped), 0
        return None

    # --- the program's own line

    def take(self, name: Any, tensors: tuple[Any, ...]) -> None:
        name = str(name)[:_MAX_NAME]
        given = {key: t for key, t in zip(_KEYS, tensors) if t is not None}  # noqa: B905
        try:
            self._take(name, given)
        except Unfit as why:
            self._waiting.pop(name, None)
            moment = self.moment()
            if moment is not None:
                self.refuse(name, moment, _SOURCE, str(why))

    def _take(self, name: str, given: dict[str, Any]) -> None:
        waiting = self._waiting.get(name)
        if waiting is None or any(key in given and waiting.has(key) for key in (NEW, OLD)):
            waiting = _Waiting()  # what comes a second time begins anew
        is_complete = all(key in given or waiting.has(key) for key in (NEW, OLD))
        if not is_complete:
            return self._keep(name, waiting, given)
        # Old serves for every new that follows: those of later epochs too.
        if NEW not in given or not waiting.has(OLD):
            self._waiting.pop(name, None)
        moment = self.moment()
        if moment is not None and self._agent.open() is not None:
            self._complete(name, moment, waiting, given)
        return None

    def _keep(self, name: str, waiting: _Waiting, given: dict[str, Any]) -> None:
        if name not in self._waiting and len(self._waiting) >= _MAX_NAMES:
            raise Unfit(f"more than {_MAX_NAMES} names wait for the rest of their arrays")
        count = self._agent.updates.count
        for key, tensor in given.items():
            waiting.arrays[key] = as_array(key, tensor, copy=True)
            waiting.places[key] = place_of(tensor)
        if OLD in given:
            waiting.origin = self._origins.seen(given[OLD], Origin(count, True))
        if NEW in given:
            waiting.new_at = count
        self._waiting[name] = waiting

    def _complete(
        self, name: str, moment: tuple[int, int], waiting: _Waiting, given: dict[str, Any]
    ) -> None:
        arrays = dict(waiting.arrays)
        for key, tensor in given.items():
            arrays[key] = as_array(key, tensor, copy=False)
        count = self._agent.updates.count
        origin = waiting.origin
        if OLD in given:
            origin = self._origins.seen(given[OLD], Origin(count, count == 0))
        origin = self._origins.settle(self._agent.recorder.digest([arrays[OLD]]), origin)
        updates = origin.updates_until(count if NEW in given else waiting.new_at)
        self.record(name, moment, arrays, _SOURCE, self._is_alias(waiting, given), updates)

    @staticmethod
    def _is_alias(waiting: _Waiting, given: dict[str, Any]) -> bool:
        if NEW not in given:
            return waiting.places[NEW].holds(given[OLD])
        place = place_of(given[OLD]) if OLD in given else waiting.places[OLD]
        return place.holds(given[NEW])

    # --- records

    def record(
        self,
        name: str,
        moment: tuple[int, int],
        arrays: dict[str, Any],
        source: str,
        aliased: bool,
        updates: int | None,
    ) -> None:
        """`arrays` by key, as as_array gives them; old is left out where it is new. Raises Unfit.
        Requires an open channel."""
        shape = arrays[NEW].shape
        kept = {key: array for key, array in arrays.items() if array.shape == shape}
        for key in arrays.keys() - kept.keys():
            what = f"{key} is {_size(arrays[key])} and new is {_size(arrays[NEW])}"
            if key in (OLD, MASK):
                raise Unfit(what)
            self._agent.note(f"log-probs '{name}': {what}: left out")
        if aliased:
            kept.pop(OLD, None)
        written = self._writer.write(name, moment[0], kept)
        self._say(name, moment, source, {**written, "aliased": aliased, "updates": updates})

    def refuse(self, name: str, moment: tuple[int, int], source: str, why: str) -> None:
        """Something was handed over that cannot be judged: said, never dropped."""
        fields = {"file": "", "keys": [], "bytes": 0, "aliased": False, "updates": None}
        self._say(name, moment, source, {**fields, "text": why})

    def _say(self, name: str, moment: tuple[int, int], source: str, fields: dict[str, Any]) -> None:
        channel = self._agent.open()
        if channel is None:
            return
        record = {"type": "logprob", "step": moment[0], "micro": moment[1], "source": source}
        channel.send({**record, "name": name.encode("utf-8", "replace").decode(), **fields})
        channel.flush()


def _size(array: Any) -> str:
    return "x".join(str(extent) for extent in array.shape)
