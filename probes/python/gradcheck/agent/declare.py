# SPDX-License-Identifier: Apache-2.0
"""What a wrapper declares about its model: `group` and `wrapper` records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .model import Comm, Model
from .world import group_name, ranks_of

if TYPE_CHECKING:
    from .core import Agent

_STOCK = "torch.distributed.algorithms.ddp_comm_hooks."
# Stock hooks that change nothing but the type on the wire, by name.
_WIRES = {
    "allreduce_hook": "",
    "fp16_compress_hook": "f16",
    "bf16_compress_hook": "bf16",
    "_reducer_allreduce_and_upcast_hook": "",
}
# … and those that are written in C++.
_BUILTIN = {"ALLREDUCE": ("allreduce", ""), "FP16_COMPRESS": ("fp16_compress", "f16")}
_DTYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}


def comm_of(hook: Any) -> Comm:
    """Of a Python communication hook. One of the program's own is taken to average."""
    module = str(getattr(hook, "__module__", "") or "")
    name = str(getattr(hook, "__qualname__", type(hook).__qualname__))
    full = f"{module}.{name}" if module else name
    if not module.startswith(_STOCK):
        return Comm(full)
    if name in _WIRES:
        return Comm(full, "mean", _WIRES[name])
    return Comm(full, "lossy")


def builtin_comm_of(kind: Any) -> Comm:
    name = str(kind).rpartition(".")[2]
    hook, wire = _BUILTIN.get(name, (name.lower(), ""))
    return Comm(hook, "mean", wire)


def declare(agent: Agent, model: Model) -> None:
    """Sends the records of a DDP model, once; nothing for a model without a wrapper."""
    model.is_declared = True
    wrapper, channel = model.wrapper, agent.channel
    if wrapper is None or channel is None:
        return
    ranks = ranks_of(wrapper.process_group)
    name = group_name(ranks, channel.world.size)
    channel.send({"type": "group", "name": name, "ranks": ranks})
    channel.send(
        {
            "type": "wrapper",
            "model": model.name,
            "kind": "ddp",
            "group": name,
            "reduce": model.comm.reduce,
            "divide": 0,
            "wire_dtype": model.comm.wire_dtype or _mixed_wire(wrapper),
            "hook": model.comm.hook,
            "ignored": sorted(n.lstrip(".") for n in wrapper.parameters_to_ignore),
            "buffers": _buffers(wrapper),
            "find_unused": bool(wrapper.find_unused_parameters),
            "static_graph": bool(wrapper.static_graph),
            "bucket_view": bool(wrapper.gradient_as_bucket_view),
        }
    )


def _mixed_wire(wrapper: Any) -> str:
    mixed = getattr(wrapper, "mixed_precision", None)
    dtype = getattr(mixed, "reduce_dtype", None) or getattr(mixed, "param_dtype", None)
    return _DTYPES.get(str(dtype).rpartition(".")[2], "")


# torch 2.13 renamed broadcast_buffers to forward_sync_buffers.
def _buffers(wrapper: Any) -> str:
    syncs = getattr(wrapper, "forward_sync_buffers", None)
    if syncs is None:
        syncs = getattr(wrapper, "broadcast_buffers", True)
    return "broadcast_before_forward" if syncs else "rank_local"


def declare_unsupported(agent: Agent) -> None:
    """Says which models are there but cannot be checked."""
    for model in agent.registry.models:
        if model.is_supported or model.is_declared or not model.kind:
            continue
        channel = agent.open()
        if channel is None:
            return
        model.is_declared = True
        channel.send({"type": "wrapper", "model": model.name, "kind": model.kind})
        channel.flush()
