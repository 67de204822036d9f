# SPDX-License-Identifier: Apache-2.0
"""Plays the front for the agent: starts ranks of a small script, collects what they send."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Record = dict[str, Any]

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "probes/python/gradcheck"

# What the scripts of these tests begin with: a process group, data that differ by rank.
PREAMBLE = """
import os, sys, torch, torch.distributed as dist, torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
torch.manual_seed(7)
rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
if size > 1:
    dist.init_process_group("gloo")
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.b = nn.Linear(8, 2)
    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))
def batch(step, micro=0):
    generator = torch.Generator().manual_seed(1000 * step + 100 * micro + rank)
    return torch.randn(3, 4, generator=generator)
def show(value):
    print("loss", rank, float(value.detach()).hex(), flush=True)
def named(name, base=Net):
    return type(name, (base,), {})()
"""
# … and end with.
FAREWELL = """
if size > 1:
    dist.barrier()
    dist.destroy_process_group()
"""


def library() -> Path:
    """The built library, beside the program; a missing one is a failure, never a skip."""
    program = os.environ.get("GRADCHECK_BIN")
    folders = [Path(program).parent] if program else sorted(ROOT.glob("build/*"))
    for folder in folders:
        if (folder / "libgradcheck_capture.so").exists():
            return folder / "libgradcheck_capture.so"
    raise AssertionError("no libgradcheck_capture.so; run scripts/test")


@dataclass
class Connection:
    """What one process sent."""

    lines: list[Record] = field(default_factory=list)
    socket: Any = None
    ended: bool = False

    @property
    def hello(self) -> Record:
        return self.lines[0]

    def of(self, kind: str) -> list[Record]:
        return [line for line in self.lines if line["type"] == kind]

    def events(self, kind: str, **fields: Any) -> list[Record]:
        lines = [line for line in self.lines if line.get("event") == kind]
        return [line for line in lines if all(line.get(k) == v for k, v in fields.items())]

    def notes(self) -> list[str]:
        return [line["text"] for line in self.events("note")]

    def tensors(
        self, stage: str, step: int = 0, micro: int = 0, model: str = ""
    ) -> dict[str, Record]:
        return {
            line["name"]: line
            for line in self.of("tensor")
            if (line["stage"], line["step"], line["micro"]) == (stage, step, micro)
            and model in ("", line["model"])
        }

    def digests(self, stage: str, step: int = 0, micro: int = 0, model: str = "") -> Record:
        found = self.tensors(stage, step, micro, model)
        return {name: line.get("digest", line["state"]) for name, line in found.items()}

    def stages(self, model: str = "") -> list[tuple[int, int, str]]:
        """(step, micro, stage) of every mark, in order."""
        return [
            (line["step"], line["micro"], line["stage"])
            for line in self.of("mark")
            if model in ("", line["model"])
        ]

    def open_stages(self) -> list[tuple[int, int, str]]:
        """Stages with tensors that no mark closed with their number."""
        counts: dict[tuple[str, int, int, str], int] = {}
        for line in self.of("tensor"):
            key = (line["model"], line["step"], line["micro"], line["stage"])
            counts[key] = counts.get(key, 0) + 1
        for line in self.of("mark"):
            key = (line["model"], line["step"], line["micro"], line["stage"])
            if counts.get(key) == line["tensors"]:
                counts.pop(key)
        return [key[1:] for key in counts]

    def order(self) -> list[str]:
        """Events and marks, for people and for tests of what follows what."""
        words = []
        for line in self.lines:
            if line["type"] == "mark":
                words.append(f"{line['stage']}:{line['step']}.{line['micro']}")
            elif line["type"] == "event":
                words.append(line["event"])
            elif line["type"] != "tensor":
                words.append(line["type"])
        return words


Answer = Callable[[Connection, Record], list[Record]]


class Front:
    """Listens; `answer` is asked at each line what to say to it."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="gradcheck-agent-"))
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        (self.directory / "payload").mkdir()
        self.path = self.directory / "front.sock"
        self.connections: list[Connection] = []
        self._answer = answer or go_at_exit
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self.path))
        self._socket.listen(64)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            connection = Connection(socket=client)
            self.connections.append(connection)
            thread = threading.Thread(target=self._read, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _read(self, connection: Connection) -> None:
        try:
            with connection.socket.makefile("rb") as stream:
                for text in stream:
                    line = json.loads(text)
                    connection.lines.append(line)
                    for record in self._answer(connection, line):
                        connection.socket.sendall(json.dumps(record).encode() + b"\n")
        except OSError:
            pass
        connection.ended = True

    def close(self) -> None:
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and not all(c.ended for c in self.connections):
            time.sleep(0.01)
        self._socket.close()


def go_at_exit(_: Connection, line: Record) -> list[Record]:
    is_exit = line.get("event") == "phase" and line.get("phase") == "exit"
    return [{"type": "go", "step": line["step"]}] if is_exit else []


@dataclass
class Ran:
    """A finished job."""

    codes: list[int]
    out: list[str]
    err: list[str]
    connections: list[Connection]
    directory: Path
    seen: list[str]

    def rank(self, rank: int) -> Connection:
        found = [c for c in self.connections if c.lines and c.hello["rank"] == rank]
        assert len(found) == 1, f"{len(found)} connections of rank {rank}: {self.err}"
        return found[0]

    @property
    def losses(self) -> list[str]:
        lines = [line for text in self.out for line in text.splitlines()]
        return sorted(line for line in lines if line.startswith("loss "))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(front: Front | None, ranks: int, job: Record) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "GRADCHECK"))}
    kept.update(OMP_NUM_THREADS="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    if ranks > 0:
        kept.update(WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks))
    if front is not None:
        kept["PYTHONPATH"] = str(PACKAGE / "_site")
        described: Record = {
            "schema": "job-1",
            "run": "test",
            "directory": str(front.directory),
            "socket": str(front.path),
            "evidence": "",
            "library": str(library()),
            "every": 100,
            "steps": 0,
            "exact": False,
            "keep_bytes": 268435456,
        }
        kept["GRADCHECK_JOB"] = json.dumps({**described, **job})
    return kept


def stop(process: subprocess.Popen[str]) -> None:
    """A launcher ends its ranks only where it is asked to end itself."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def run(
    script: str,
    ranks: int = 2,
    with_agent: bool = True,
    answer: Answer | None = None,
    preamble: str = PREAMBLE,
    farewell: str = FAREWELL,
    command: list[str] | None = None,
    timeout: float = 120,
    env: dict[str, str] | None = None,
    **job: Any,
) -> Ran:
    """Runs the script as `ranks` processes (0: one, without RANK); `job` changes GRADCHECK_JOB."""
    front = Front(answer)
    path = front.directory / "train.py"
    path.write_text(preamble + script + farewell)
    shared = environment(front if with_agent else None, ranks, job) | (env or {})
    processes = []
    for rank in range(max(1, ranks)):
        own = dict(shared)
        if ranks > 0:
            own.update(RANK=str(rank), LOCAL_RANK=str(rank))
        argv = [*(command or [sys.executable]), str(path)]
        processes.append(
            subprocess.Popen(
                argv,
                env=own,
                cwd=front.directory,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        texts = [process.communicate(timeout=timeout) for process in processes]
    finally:
        for process in processes:
            stop(process)
    front.close()
    seen = sorted(p.name.split("-", 2)[2:] or [""] for p in front.directory.glob("seen-*"))
    return Ran(
        codes=[process.returncode for process in processes],
        out=[text[0] for text in texts],
        err=[text[1] for text in texts],
        connections=front.connections,
        directory=front.directory,
        seen=[words[0] for words in seen],
    )
