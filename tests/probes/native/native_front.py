# SPDX-License-Identifier: Apache-2.0
"""Plays the front: starts a zygote, has it fork ranks, answers them, collects their evidence."""

from __future__ import annotations

import array
import json
import os
import select
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def rank_binary() -> str:
    """The built worker; a missing one is a failure, never a skip."""
    value = os.environ.get("GRADCHECK_RANK_BIN")
    assert value, "GRADCHECK_RANK_BIN is not set; run scripts/test"
    return value


def program(**changes: Any) -> Record:
    """A KTO program under DDP; keyword arguments overwrite its fields."""
    options = {
        "broadcast_buffers": True,
        "find_unused_parameters": False,
        "gradient_as_bucket_view": False,
        "static_graph": False,
        "no_sync": "none",
        "hook": "none",
    }
    options.update(changes.pop("options", {}))
    base: Record = {
        "model": "qwen3_0_6b",
        "trainer": "kto",
        "loss": "chunked",
        "wrapper": {"kind": changes.pop("wrapper", "ddp"), "options": options},
        "path": "redirected",
        "backend": "gloo",
        "dtype": "fp32",
        "data": "per_rank",
        "loss_scale": 1,
        "batch_size": 4,
        "hidden_size": 0,
        "desirable_weight": 1,
        "undesirable_weight": 1,
    }
    base.update(changes)
    return base


@dataclass
class RankEvidence:
    """What one rank sent, and how it ended."""

    lines: list[Record] = field(default_factory=list)
    stderr: str = ""
    exit: Record | None = None

    def of(self, kind: str) -> list[Record]:
        return [line for line in self.lines if line["type"] == kind]

    def events(self, kind: str) -> list[Record]:
        return [line for line in self.lines if line.get("event") == kind]

    def tensors(self, stage: str, micro: int | None = None) -> dict[str, Record]:
        return {
            line["name"]: line
            for line in self.of("tensor")
            if line["stage"] == stage and (micro is None or line["micro"] == micro)
        }

    def digests(self, stage: str, step: int = 0) -> dict[str, str]:
        return {
            line["name"]: line.get("digest", "")
            for line in self.of("tensor")
            if line["stage"] == stage and line["step"] == step
        }


class Zygote:
    """A gradcheck-rank zygote, ended with the block it is used in."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fd = theirs.fileno()
        self.process = subprocess.Popen([rank_binary(), "--zygote", str(fd)], pass_fds=[fd])
        theirs.close()
        self.ready = self.receive()

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *_: object) -> None:
        self.control.close()
        assert self.process.wait(timeout=10) == 0

    def receive(self, timeout: float = 30) -> Record:
        self.control.settimeout(timeout)
        packet = self.control.recv(8192)
        assert packet, "the zygote has gone"
        return json.loads(packet)

    def send(self, packet: Record, descriptors: list[int]) -> None:
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        self.control.sendmsg([json.dumps(packet).encode()], [rights] if descriptors else [])

    def fork(self, channels: list[int], errors: list[int]) -> Record:
        self.send({"type": "fork", "ranks": len(channels)}, channels + errors)
        return self.receive()


class Arm:
    """One run of a program: N ranks, their channels, a run directory."""

    def __init__(self, zygote: Zygote, ranks: int, what: Record, **run: Any) -> None:
        self.zygote = zygote
        self.directory = Path(tempfile.mkdtemp(prefix="gradcheck-test-"))
        (self.directory / "payload").mkdir()
        self.evidence = [RankEvidence() for _ in range(ranks)]
        self.channels: list[socket.socket] = []
        self.buffers = [b""] * ranks
        self.wants: list[Record] = run.pop("wants", [])
        theirs: list[socket.socket] = []
        for _ in range(ranks):
            ours, other = socket.socketpair()
            self.channels.append(ours)
            theirs.append(other)
        errors = [os.open(self.stderr_path(r), os.O_CREAT | os.O_WRONLY) for r in range(ranks)]
        self.pids = zygote.fork([s.fileno() for s in theirs], errors)["pids"]
        for other in theirs:
            other.close()
        for error in errors:
            os.close(error)
        for rank in range(ranks):
            self.tell(rank, self.run_record(rank, ranks, what, run))

    def stderr_path(self, rank: int) -> Path:
        return self.directory / f"stderr-{rank}"

    def run_record(self, rank: int, ranks: int, what: Record, run: Record) -> Record:
        record = {
            "type": "run",
            "run": "test",
            "directory": str(self.directory),
            "rank": rank,
            "world_size": ranks,
            "steps": 1,
            "micro_steps": 1,
            "seed": 7,
            "rendezvous_timeout_s": 10,
            "collective_timeout_s": 10,
            "program": what,
        }
        record.update(run)
        return record

    def tell(self, rank: int, record: Record) -> None:
        self.channels[rank].sendall(json.dumps(record).encode() + b"\n")

    def finish(self, timeout: float = 60) -> list[RankEvidence]:
        """Reads and answers until every rank has ended; kills what is left at the deadline."""
        deadline = time.monotonic() + timeout
        open_ranks = set(range(len(self.channels)))
        while open_ranks and time.monotonic() < deadline:
            sockets = [self.channels[r] for r in open_ranks]
            for ready in select.select(sockets, [], [], 0.1)[0]:
                rank = self.channels.index(ready)
                if not self.read_from(rank):
                    open_ranks.discard(rank)
        for rank in open_ranks:
            os.kill(self.pids[rank], 9)
        self.collect_exits()
        return self.evidence

    def read_from(self, rank: int) -> bool:
        try:
            data = self.channels[rank].recv(1 << 20)
        except ConnectionResetError:
            data = b""
        *lines, self.buffers[rank] = (self.buffers[rank] + data).split(b"\n")
        for line in lines:
            self.take(rank, json.loads(line))
        return bool(data)

    def take(self, rank: int, record: Record) -> None:
        self.evidence[rank].lines.append(record)
        if record.get("event") == "step_done":
            for want in self.wants:
                self.tell(rank, {"type": "want", "step": record["step"], **want})
            self.tell(rank, {"type": "go", "step": record["step"]})

    def collect_exits(self) -> None:
        for _ in self.pids:
            packet = self.zygote.receive()
            self.evidence[packet["rank"]].exit = packet
        for rank, evidence in enumerate(self.evidence):
            evidence.stderr = self.stderr_path(rank).read_text()
            self.channels[rank].close()

    def clean(self) -> None:
        shutil.rmtree(self.directory)


def run_arm(zygote: Zygote, ranks: int, what: Record, **run: Any) -> list[RankEvidence]:
    arm = Arm(zygote, ranks, what, **run)
    try:
        return arm.finish()
    finally:
        arm.clean()


def differing(evidence: list[RankEvidence], stage: str, step: int = 0) -> int:
    """How many tensors of a stage do not have one digest on all ranks."""
    per_rank = [one.digests(stage, step) for one in evidence]
    return sum(len({digests.get(name) for digests in per_rank}) > 1 for name in per_rank[0])


def read_safetensors(path: Path) -> dict[str, array.array[float]]:
    """The float32 tensors of a payload file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    body = data[8 + size :]
    tensors = {}
    for key, entry in json.loads(data[8 : 8 + size]).items():
        if key == "__metadata__":
            continue
        assert entry["dtype"] == "F32"
        begin, end = entry["data_offsets"]
        tensors[key] = array.array("f", body[begin:end])
    return tensors
