# SPDX-License-Identifier: Apache-2.0
"""TRL's GRPO and RLOO trainers compute new and old log-probs themselves: recorded where they do,
in versions whose code is known."""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .arrays import MASK, NEW, OLD, TOKEN_IDS, Unfit, as_array
from .guard import unseen
from .log_probs import log_probs_of

if TYPE_CHECKING:
    from types import ModuleType

    from .core import Agent

_FIRST, _LAST = (1, 9), (1, 16)  # releases that were read
_LOSS = "_compute_loss"
_SCORE = "_get_per_token_logps_and_entropies"
_GENERATE = "_generate_and_score_completions"
_FUSED = "compute_liger_loss"  # hands out no log-probs


def hook_grpo(agent: Agent, module: ModuleType) -> None:
    _hook(agent, getattr(module, "GRPOTrainer", None), "GRPOTrainer", _Grpo)


def hook_rloo(agent: Agent, module: ModuleType) -> None:
    _hook(agent, getattr(module, "RLOOTrainer", None), "RLOOTrainer", _Rloo)


def _hook(agent: Agent, kind: Any, name: str, watch: type[_Trainer]) -> None:
    version = str(getattr(sys.modules.get("trl"), "__version__", "unknown"))
    known = _FIRST <= _release(version) <= _LAST
    if not known or not all(callable(getattr(kind, m, None)) for m in (_LOSS, _SCORE, _GENERATE)):
        agent.note(f"log-probs of trl {version}: unknown version of {name}, not recorded")
        return
    trainer = watch(agent, name)
    _bracket(agent, kind, _LOSS, trainer.loss_begins, trainer.loss_ended)
    _bracket(agent, kind, _GENERATE, trainer.generation_begins, trainer.generated)
    _bracket(agent, kind, _SCORE, None, trainer.scored)
    if hasattr(kind, _FUSED):
        _bracket(agent, kind, _FUSED, trainer.fused, None)


def _release(version: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in version.split(".")[:2])
    except ValueError:
        return (0,)


def _bracket(agent: Agent, kind: Any, name: str, begins: Any, ended: Any) -> None:
    original = getattr(kind, name)
    before = None if begins is None else agent.shield(begins)
    after = None if ended is None else agent.shield(ended)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if before is not None:
            before(self, args, kwargs)
        result = original(self, *args, **kwargs)
        if after is not None:
            after(self, args, kwargs, result)
        return result

    setattr(kind, name, unseen(method))


class _Now(threading.local):
    """What this thread's trainer is doing."""

    batch: Any = None  # of the loss that is computed, until its log-probs are there
    is_generating = False
    first_score: Any = None  # of the generation


class _Generation:
    def __init__(self, count: int) -> None:
        self.count = count  # optimizer steps of the process by then
        self.old: Any = None  # by row, of rows that will come back in another order
        self.ids: Any = None
        self.sums: Any = None


class _Trainer:
    """What both trainers have in common."""

    def __init__(self, agent: Agent, name: str) -> None:
        self._agent = agent
        self._name = name
        self._log_probs = log_probs_of(agent)
        self._now = _Now()
        self._generations: WeakKeyDictionary[Any, _Generation] = WeakKeyDictionary()
        self._has_noted = False

    def _note(self, text: str) -> None:
        if not self._has_noted:
            self._has_noted = True
            version = getattr(sys.modules.get("trl"), "__version__", "unknown")
            self._agent.note(f"log-probs of trl {version} {self._name}: {text}, not recorded")

    @staticmethod
    def _trains(trainer: Any) -> bool:
        return bool(trainer.model.training)

    # --- generation

    def generation_begins(self, trainer: Any, args: Any, kwargs: Any) -> None:
        self._now.is_generating, self._now.first_score = True, None
        if self._trains(trainer):
            self._generations[trainer] = _Generation(self._agent.updates.count)

    def generated(self, trainer: Any, args: Any, kwargs: Any, output: Any) -> None:
        first, self._now.first_score = self._now.first_score, None
        self._now.is_generating = False
        generation = self._generations.get(trainer)
        if generation is not None and self._trains(trainer) and self._log_probs.is_wanted:
            self.keep(generation, output, first)

    def keep(self, generation: _Generation, output: Any, first: Any) -> None:
        return

    # --- loss

    def fused(self, trainer: Any, args: Any, kwargs: Any) -> None:
        self._note("its fused loss hands out none")

    def loss_begins(self, trainer: Any, args: Any, kwargs: Any) -> None:
        self._now.is_generating = False  # one that raised
        is_wanted = self._trains(trainer) and self._log_probs.is_wanted
        batch = kwargs.get("inputs", args[1] if len(args) > 1 else None)
        self._now.batch = batch if is_wanted else None

    def loss_ended(self, trainer: Any, args: Any, kwargs: Any, result: Any) -> None:
        if self._now.batch is not None:
            self._now.batch = None
            self._note(f"{_LOSS} did not call {_SCORE}")

    def scored(self, trainer: Any, args: Any, kwargs: Any, result: Any) -> None:
        now = self._now
        if now.is_generating:
            if now.first_score is None:
                now.first_score = result[0].detach()
        elif now.batch is not None:
            batch, now.batch = now.batch, None
            moment = self._log_probs.moment()
            if moment is not None and self._agent.open() is not None:
                self._record(trainer, moment, batch, result)

    def _record(self, trainer: Any, moment: tuple[int, int], batch: Any, result: Any) -> None:
        generation = self._generations.get(trainer)
        updates = None if generation is None else self._agent.updates.count - generation.count
        given = {NEW: result[0], MASK: batch["completion_mask"], TOKEN_IDS: batch["completion_ids"]}
        given["entropy"] = result[1] if len(result) > 1 else None
        source = f"trl {self._name}"
        try:
            given.update(self.more(batch, generation))
            arrays = {k: as_array(k, t, copy=False) for k, t in given.items() if t is not None}
            is_alias = OLD not in arrays
            self._log_probs.record("train", moment, arrays, source, is_alias, updates)
        except Unfit as why:
            self._log_probs.refuse("train", moment, source, str(why))

    def more(self, batch: Any, generation: _Generation | None) -> dict[str, Any]:
        """What else there is; without old, old is new by construction."""
        raise NotImplementedError


class _Grpo(_Trainer):
    """`old_per_token_logps` is missing where the trainer takes new.detach() for it."""

    def more(self, batch: Any, generation: _Generation | None) -> dict[str, Any]:
        given = {
            OLD: batch.get("old_per_token_logps"),
            "rollout": batch.get("sampling_per_token_logps"),
            "ref": batch.get("ref_per_token_logps"),
        }
        if batch.get("tool_mask") is not None:
            given[MASK] = batch["completion_mask"] * batch["tool_mask"]
        return given


class _Rloo(_Trainer):
    """A batch carries only each row's sum of old log-probs; by it and the row's tokens the row is
    found among those that were generated."""

    def keep(self, generation: _Generation, output: Any, first: Any) -> None:
        if first is None:
            return
        generation.old = first.cpu()
        generation.ids = output["completion_ids"].detach().cpu()
        generation.sums = output["old_logps"].detach().cpu()

    def more(self, batch: Any, generation: _Generation | None) -> dict[str, Any]:
        if generation is None or generation.old is None:
            raise Unfit("the old log-probs of this batch were not seen")
        ids, sums = batch["completion_ids"].cpu(), batch["old_logps"].detach().cpu()
        width = ids.shape[1]
        same = (generation.ids[None, :, :width] == ids[:, None]).all(-1)
        same &= generation.sums[None] == sums[:, None]
        if not bool(same.any(1).all()):
            raise Unfit("the rows of this batch are not those that were generated")
        return {OLD: generation.old[same.to(int).argmax(1)][:, :width]}
