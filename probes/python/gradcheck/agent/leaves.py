# SPDX-License-Identifier: Apache-2.0
"""Finds what gets gradients although no known optimizer and no wrapper holds it, and changes all
the same: trained by hand, where nobody looks."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .guard import unseen
from .roots import places_of
from .tensors import is_plain_type

if TYPE_CHECKING:
    from .core import Agent

_MAX_NODES = 20_000  # of one graph
_MAX_MARKS = 10_000
_MAX_NAMES = 3


class Leaves:
    """A leaf that nobody holds gets a hook that does nothing and knows the leaf's value. The hook
    is all that is kept, so that no leaf lives longer and an address that is used again is no
    return: inputs of a batch never come back, parameters do."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._marks = 0
        self._is_told = False

    def look(self, outputs: Any) -> None:
        """At the graph of a backward that is about to run."""
        agent = self._agent
        if self._is_told or agent.registry.has_unsupported or agent.channel is None:
            return
        held = agent.registry.held()
        changed = [leaf for leaf in _leaves(outputs) if id(leaf) not in held and self._meet(leaf)]
        self._tell(changed)

    def finish(self) -> None:
        """At the end of the program: what changed after its last backward."""
        if self._is_told or self._marks == 0:
            return
        held = self._agent.registry.held()
        marked = [tensor for tensor in _tensors() if _mark_of(tensor) is not None]
        self._tell([leaf for leaf in marked if id(leaf) not in held and self._meet(leaf)])

    # True if it was there before with another value.
    def _meet(self, leaf: Any) -> bool:
        digest = self._agent.recorder.digest([leaf])
        mark = _mark_of(leaf)
        if mark is not None:
            return bool(digest) and mark.digest != digest
        if digest and self._marks < _MAX_MARKS and is_plain_type(type(leaf)) and leaf.requires_grad:
            self._marks += 1
            leaf.register_hook(_mark(digest))
        return False

    def _tell(self, changed: list[Any]) -> None:
        if not changed:
            return
        self._is_told = True
        names = places_of(changed)[:_MAX_NAMES]
        first = f", first {', '.join(names)}" if names else ""
        self._agent.note(
            f"not checked: {len(changed)} tensors change and get gradients, but no optimizer step "
            f"and no wrapper that was seen holds them{first}"
        )


def _mark(digest: str) -> Any:
    def gradcheck_mark(gradient: Any) -> None:
        return None

    gradcheck_mark.digest = digest  # type: ignore[attr-defined]
    gradcheck_mark.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return unseen(gradcheck_mark)


def _mark_of(tensor: Any) -> Any:
    for hook in (tensor._backward_hooks or {}).values():
        if getattr(hook, "__name__", "") == "gradcheck_mark":
            return hook
    return None


def _leaves(outputs: Any) -> Iterator[Any]:
    """That the engine will accumulate into. Nothing where the graph is too large to be walked."""
    todo = [_node_of(output) for output in outputs]
    seen: dict[int, Any] = {}  # keeps the nodes: their addresses must not be used again
    found = []
    while todo:
        node = todo.pop()
        if node is None or id(node) in seen:
            continue
        if len(seen) >= _MAX_NODES:
            return
        seen[id(node)] = node
        if type(node).__name__ == "AccumulateGrad":
            found.append(node.variable)
        todo.extend(child for child, _ in node.next_functions)
    yield from found


def _node_of(output: Any) -> Any:
    node = getattr(output, "node", None)  # of a GradientEdge
    return output.grad_fn if node is None else node


def _tensors() -> list[Any]:
    kind = sys.modules["torch"].Tensor
    return [t for t in gc.get_objects() if issubclass(type(t), kind) and is_plain_type(type(t))]
