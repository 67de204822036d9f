# SPDX-License-Identifier: Apache-2.0
"""Which models and optimizers the program has."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from .model import LooseSource, Model, ModuleSource
from .roots import class_name, find_roots, unwrapped
from .tensors import is_dtensor

if TYPE_CHECKING:
    from .core import Agent


_MAX_LOOSE = 8  # models made of parameters that are in no module


class OptimizerInfo:
    """What is remembered of an optimizer."""

    def __init__(self) -> None:
        self.models: list[Model] = []
        self.calls = 0  # of step()
        self.is_ignored = False  # its tensors are an engine's own
        self.is_resolved = False


def parameters_of(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


class Registry:
    """Wrappers are told to it; modules without one are found through their optimizers."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.models: list[Model] = []  # in order of construction
        self.optimizers: WeakKeyDictionary[Any, OptimizerInfo] = WeakKeyDictionary()
        self.is_dirty = False  # an optimizer is not resolved yet
        self._wrapped: dict[int, Model] = {}  # by id of the wrapper
        self._counts: Counter[str] = Counter()
        self._loose_models = 0
        self._unsupported: list[tuple[Any, str]] = []  # weak reference to the module, kind

    # --- wrappers

    def add_wrapper(self, wrapper: Any) -> Model:
        known = self._wrapped.get(id(wrapper))
        if known is not None and known.wrapper is wrapper:
            return known
        root = unwrapped(wrapper.module)
        model = Model(self._name_for(root), ModuleSource(root), wrapper)
        if any(is_dtensor(parameter) for _, parameter in model.source.parameters()):
            self._refuse(model, "dtensor")
        self._wrapped[id(wrapper)] = model
        self.models.append(model)
        self._resolve_again()
        return model

    def model_of(self, wrapper: Any) -> Model:
        """Of a DDP module, which may have been copied or unpickled."""
        model = self._wrapped.get(id(wrapper))
        if model is not None and model.wrapper is wrapper:
            return model
        return self.add_wrapper(wrapper)

    def add_unsupported(self, module: Any, kind: str) -> None:
        self._unsupported.append((ref(module), kind))
        self._resolve_again()

    @staticmethod
    def _refuse(model: Model, kind: str) -> None:
        model.kind = kind
        model.is_supported = model.is_due = False

    def _name_for(self, module: Any) -> str:
        return self._numbered(class_name(module))

    def _numbered(self, name: str) -> str:
        self._counts[name] += 1
        return name if self._counts[name] == 1 else f"{name} {self._counts[name]}"

    # --- optimizers

    def add_optimizer(self, optimizer: Any) -> None:
        """A new one, or one that got more parameters."""
        self.info(optimizer).is_resolved = False
        self.is_dirty = True

    def ignore_optimizer(self, optimizer: Any) -> None:
        info = self.info(optimizer)
        info.is_ignored = info.is_resolved = True
        info.models = []

    def info(self, optimizer: Any) -> OptimizerInfo:
        info = self.optimizers.get(optimizer)
        if info is None:
            info = self.optimizers[optimizer] = OptimizerInfo()
            self.is_dirty = True
        return info

    def models_of(self, optimizer: Any) -> list[Model]:
        """Whose parameters it holds."""
        if self.is_dirty:
            self.resolve()
        return self.info(optimizer).models

    def _resolve_again(self) -> None:
        for info in self.optimizers.values():
            info.is_resolved = info.is_ignored
        self.is_dirty = True

    def resolve(self) -> None:
        """Finds the models of all optimizers; makes those that have no wrapper."""
        self.is_dirty = False
        self._forget_gone()
        self._declare_unsupported()
        owners = self._owners()
        for optimizer, info in list(self.optimizers.items()):
            if info.is_resolved:
                continue
            info.is_resolved = True
            self._find_unknown(optimizer, owners)
            models: list[Model] = []
            for parameter in parameters_of(optimizer):
                model = owners.get(id(parameter))
                if model is not None and model not in models:
                    models.append(model)
            info.models = models

    # A program that makes models by the dozen (a search, cross-validation) is not to leak them.
    def _forget_gone(self) -> None:
        for model in [m for m in self.models if m.is_gone]:
            self.models.remove(model)
        self._wrapped = {key: m for key, m in self._wrapped.items() if m in self.models}

    def _declare_unsupported(self) -> None:
        known = {id(model.source.module()) for model in self.models}
        alive = [(weak(), kind) for weak, kind in self._unsupported]
        inner: set[int] = set()
        for module, _ in alive:
            if module is not None:
                inner.update(id(child) for child in module.modules() if child is not module)
        for module, kind in alive:
            if module is not None and id(module) not in known | inner:
                model = Model(self._name_for(unwrapped(module)), ModuleSource(module))
                self._refuse(model, kind)
                self.models.append(model)

    @property
    def has_unsupported(self) -> bool:
        return bool(self._unsupported) or any(not model.is_supported for model in self.models)

    def held(self) -> set[int]:
        """Ids of what some model or optimizer is known to hold."""
        ids = set(self._owners())
        for optimizer in self.optimizers:
            ids.update(id(parameter) for parameter in parameters_of(optimizer))
        return ids

    def _owners(self) -> dict[int, Model]:
        owners: dict[int, Model] = {}
        # What was wrapped twice belongs to the later wrapper, whether or not the first is alive.
        for model in reversed(self.models):
            for _, parameter in model.source.parameters():
                owners.setdefault(id(parameter), model)
        return owners

    def _find_unknown(self, optimizer: Any, owners: dict[int, Model]) -> None:
        unknown = [p for p in parameters_of(optimizer) if id(p) not in owners]
        if not unknown:
            return
        for root in find_roots(unknown):
            model = Model(self._name_for(root), ModuleSource(root))
            parameters = [p for _, p in model.source.parameters()]
            if any(is_dtensor(p) for p in parameters):
                self._refuse(model, "dtensor")
            self.models.append(model)
            for parameter in parameters:
                owners.setdefault(id(parameter), model)
        self._take_loose(optimizer, [p for p in unknown if id(p) not in owners], owners)

    # An engine's partitions of parameters are in no module either: no tensors to compare.
    def _take_loose(self, optimizer: Any, loose: list[Any], owners: dict[int, Model]) -> None:
        if not loose:
            return
        if self._unsupported or any(is_dtensor(parameter) for parameter in loose):
            self._agent.note(f"{len(loose)} parameters of an optimizer belong to no known module")
            return
        if self._loose_models >= _MAX_LOOSE:
            return  # an attack on inputs, say, makes an optimizer a batch
        self._loose_models += 1
        if self._loose_models == _MAX_LOOSE:
            self._agent.note("not checked: more parameters outside of modules")
        ids = {id(parameter) for parameter in loose}
        owned = {id(p) for p in parameters_of(optimizer)} - ids
        source = LooseSource(optimizer, lambda parameter: id(parameter) in owned)
        model = Model(self._numbered("optimizer"), source)
        self.models.append(model)
        owners.update(dict.fromkeys(ids, model))
