# SPDX-License-Identifier: Apache-2.0
"""Finds the modules that hold parameters of which only the optimizer is known."""

from __future__ import annotations

import gc
import sys
from typing import Any

# Modules that only stand for another one.
_SHELLS = {
    "OptimizedModule": "_orig_mod",
    "DataParallel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
}


def unwrapped(module: Any) -> Any:
    """The module that the program wrote."""
    while True:
        name = _SHELLS.get(type(module).__name__)
        inner = module.__dict__.get("_modules", {}).get(name) if name else None
        if inner is None:
            return module
        module = inner


def class_name(module: Any) -> str:
    """As the program wrote it: fully_shard puts a class of its own before it."""
    kinds = type(module).__mro__
    for position, kind in enumerate(kinds[:-1]):
        if kind.__name__ == "FSDPModule" and position > 0:
            return kinds[position + 1].__name__
    return kinds[0].__name__


def _modules() -> list[Any]:
    kind = sys.modules["torch"].nn.Module
    # By type, not isinstance: proxies must not be woken.
    return [m for m in gc.get_objects() if issubclass(type(m), kind) and "_modules" in m.__dict__]


class _Forest:
    def __init__(self) -> None:
        self.parents: dict[int, list[Any]] = {}
        self.holders: dict[int, list[Any]] = {}  # by id of a parameter
        for module in _modules():
            for child in module.__dict__["_modules"].values():
                if child is not None:
                    self.parents.setdefault(id(child), []).append(module)
            for parameter in module.__dict__["_parameters"].values():
                if parameter is not None:
                    self.holders.setdefault(id(parameter), []).append(module)

    def roots_over(self, parameter: Any) -> list[Any]:
        roots: dict[int, Any] = {}
        seen: set[int] = set()
        queue = list(self.holders.get(id(parameter), []))
        while queue:
            module = queue.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            above = self.parents.get(id(module), [])
            queue.extend(above)
            if not above:
                roots[id(module)] = module
        return list(roots.values())


def find_roots(parameters: list[Any]) -> list[Any]:
    """The fewest root modules that hold these parameters, those with most of them first; equal on
    all ranks of one program. Parameters that are in no module are left out."""
    forest = _Forest()
    held: dict[int, tuple[Any, set[int]]] = {}
    first: dict[int, int] = {}
    for position, parameter in enumerate(parameters):
        for root in forest.roots_over(parameter):
            held.setdefault(id(root), (root, set()))[1].add(id(parameter))
            first.setdefault(id(root), position)

    def rank(key: int) -> tuple[int, str, int]:
        root, ids = held[key]
        return -len(ids), type(root).__qualname__, first[key]

    missing = {identity for _, ids in held.values() for identity in ids}
    chosen: list[tuple[int, Any]] = []
    for key in sorted(held, key=rank):
        root, ids = held[key]
        if ids & missing:
            missing -= ids
            chosen.append((first[key], unwrapped(root)))
    return [root for _, root in sorted(chosen, key=lambda pair: pair[0])]


def places_of(parameters: list[Any]) -> list[str]:
    """Where they are held, as "Linear.weight"; those that are in no module are left out."""
    wanted = {id(parameter) for parameter in parameters}
    return [
        f"{class_name(module)}.{name}"
        for module in _modules()
        for name, parameter in module.__dict__["_parameters"].items()
        if id(parameter) in wanted
    ]
