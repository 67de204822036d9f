# SPDX-License-Identifier: Apache-2.0
"""Which rank of which world this process is, and what else `hello` says."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

# Can change what the program computes or how its ranks meet; nothing else of the environment.
_ENVIRONMENT = (
    "ACCELERATE_MIXED_PRECISION",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "DS_ACCELERATOR",
    "GLOO_SOCKET_IFNAME",
    "MASTER_ADDR",
    "MASTER_PORT",
    "MKL_NUM_THREADS",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_SOCKET_IFNAME",
    "NVIDIA_TF32_OVERRIDE",
    "OMPI_COMM_WORLD_RANK",
    "OMP_NUM_THREADS",
    "PMI_RANK",
    "PYTHONHASHSEED",
    "SLURM_PROCID",
    "TORCHDYNAMO_DISABLE",
    "TORCHELASTIC_RUN_ID",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_DISTRIBUTED_DEBUG",
    "WORLD_SIZE",
)
_PACKAGES = ("accelerate", "deepspeed", "lightning", "pytorch_lightning", "torch", "transformers")
_MORE_PACKAGES = ("liger_kernel", "peft", "trl", "verl")
_MAX_COUNT = 1 << 53
_MAX_ANCESTORS = 16


class World(NamedTuple):
    name: str  # equal on all ranks of one world: digest of store address and size
    rank: int
    size: int
    local_rank: int
    restart: int
    backend: str

    @property
    def is_claimed(self) -> bool:
        """By the environment alone: no process group says so."""
        return self.size > 1 and not self.backend


def is_child_of_a_rank(directory: str) -> bool:
    """True where a process above this one has opened its channel: it hands its rank's variables
    down to every helper that it starts."""
    return any(os.path.exists(os.path.join(directory, f"seen-{p}-wrapped")) for p in _ancestors())


def _ancestors() -> Iterator[int]:
    process = os.getppid()
    for _ in range(_MAX_ANCESTORS):
        if process <= 1:
            return
        yield process
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
                process = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return  # no such file system: the parent alone is known


def _integer(name: str, fallback: int) -> int:
    try:
        return int(os.environ.get(name, ""))
    except ValueError:
        return fallback


def digest_of(text: str) -> str:
    from hashlib import blake2b

    return blake2b(text.encode("utf-8", "replace")).hexdigest()[:16]


def find_world() -> World:
    distributed = sys.modules.get("torch.distributed")
    restart = max(0, _integer("TORCHELASTIC_RESTART_COUNT", 0))
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        rank, size = distributed.get_rank(), distributed.get_world_size()
        name = digest_of(f"{_store_address()}:{size}")
        local = _integer("LOCAL_RANK", rank)
        return World(name, rank, size, local, restart, str(distributed.get_backend()))
    rank, size = _integer("RANK", -1), _integer("WORLD_SIZE", 1)
    if 0 <= rank < size and size > 1:
        name = digest_of(f"env:{os.environ.get('MASTER_PORT', '')}:{size}")
        return World(name, rank, size, _integer("LOCAL_RANK", rank), restart, "")
    return World(digest_of(f"pid:{os.getpid()}:1"), 0, 1, 0, restart, "")


def _store_address() -> str:
    try:
        store = sys.modules["torch.distributed.distributed_c10d"]._get_default_store()
        for _ in range(8):
            inner = getattr(store, "underlying_store", None)
            if inner is None:
                break
            store = inner
        kind = type(store).__name__
        if kind == "TCPStore":
            return f"tcp:{store.port}"
        if kind == "FileStore":
            return f"file:{store.path}"
    except Exception:
        return "other"
    return "other"


def hello(run: str, world: World) -> dict[str, Any]:
    from socket import gethostname

    torch = sys.modules["torch"]
    record: dict[str, Any] = {
        "type": "hello",
        "schema": "evidence-1",
        "run": run,
        "world": world.name,
        "role": "trainer",
        "rank": world.rank,
        "restart": world.restart,
        "world_size": world.size,
        "local_rank": max(0, world.local_rank),
        "host": gethostname(),
        "pid": os.getpid(),
        "producer": "python",
        "backend": world.backend,
        "device": "cuda" if _uses_cuda(torch) else "cpu",
        "versions": _versions(),
        "env": [f"{name}={os.environ[name]}" for name in _ENVIRONMENT if name in os.environ],
    }
    seed = torch.initial_seed()
    if 0 <= seed < _MAX_COUNT:
        record["seed"] = seed
    return record


# Asking must not initialise a device.
def _uses_cuda(torch: Any) -> bool:
    try:
        return bool(torch.cuda.is_initialized())
    except Exception:
        return False


def _versions() -> list[str]:
    versions = [f"python={sys.version.split()[0]}"]
    for name in sorted(_PACKAGES + _MORE_PACKAGES):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            versions.append(f"{name}={version}")
    return versions


def ranks_of(group: Any) -> list[int]:
    """Global ranks of a process group, None being the default one."""
    c10d = sys.modules["torch.distributed.distributed_c10d"]
    group = group if group is not None else c10d._get_default_group()
    return sorted(int(rank) for rank in c10d.get_process_group_ranks(group))


def group_name(ranks: list[int], size: int) -> str:
    if ranks == list(range(size)):
        return "world"
    if len(ranks) <= 16:
        return "ranks " + ",".join(map(str, ranks))
    return "ranks " + digest_of(",".join(map(str, ranks)))
