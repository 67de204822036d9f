# SPDX-License-Identifier: Apache-2.0
"""How many optimizer steps ago an old log-prob was made: known by its storage, or by its bits."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple
from weakref import ref

_MAX_STORAGES = 64
_MAX_DIGESTS = 1024


class Place(NamedTuple):
    """Where a tensor's elements lie, for as long as they do."""

    storage: Any  # weak reference, or None
    address: int
    version: int

    def holds(self, tensor: Any) -> bool:
        """True if `tensor` begins at this very place."""
        return self.is_part_of(tensor) and self.address == place_of(tensor).address

    def is_part_of(self, tensor: Any) -> bool:
        mine = None if self.storage is None else self.storage()
        return mine is not None and mine is _storage(tensor)


class Origin(NamedTuple):
    """When an old log-prob was seen first."""

    count: int  # optimizer steps of the process by then
    is_made: bool  # it was made then, as far as anybody can tell; else some time before

    def updates_until(self, count: int) -> int | None:
        """None where that is not known. More than were seen may have been before."""
        since = count - self.count
        return since if self.is_made or since > 0 else None


class Origins:
    """Keeps no tensor alive."""

    def __init__(self) -> None:
        self._places: list[tuple[Place, Origin]] = []
        self._digests: OrderedDict[str, Origin] = OrderedDict()

    def seen(self, old: Any, here: Origin) -> Origin:
        """The first of its storage, a part of which counts too; `here` if there is none."""
        place = place_of(old)
        self._places = [(p, o) for p, o in self._places if p.storage() is not None]
        for known, origin in self._places:
            if known.is_part_of(old) and known.version == place.version:
                return origin
        if place.storage is not None:
            self._places = [*self._places[1 - _MAX_STORAGES :], (place, here)]
        return here

    def settle(self, digest: str, here: Origin) -> Origin:
        """The first with these bits."""
        if not digest:
            return here
        origin = self._digests.setdefault(digest, here)
        while len(self._digests) > _MAX_DIGESTS:
            self._digests.popitem(last=False)
        return origin


def place_of(tensor: Any) -> Place:
    storage = _storage(tensor)
    try:
        weak = None if storage is None else ref(storage)
        return Place(weak, int(tensor.data_ptr()), _version(tensor))
    except Exception:
        return Place(None, 0, 0)


# The Python object of a storage is one and the same while its elements live (since torch 2.1).
def _storage(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()
    except Exception:
        return None


def _version(tensor: Any) -> int:
    return -1 if tensor.is_inference() else int(tensor._version)
