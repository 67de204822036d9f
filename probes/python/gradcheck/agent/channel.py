# SPDX-License-Identifier: Apache-2.0
"""A rank's way to the front: records out, `want` and `go` in. Knows nothing of torch."""

from __future__ import annotations

import json
import math
import os
from ctypes import create_string_buffer
from typing import Any

from .job import Job
from .library import LINE_BYTES, STAGES, CaptureError, Library, flag_array, slot_array
from .world import World

_SEND_TIMEOUT_S = 30.0
_EXIT_WAIT_S = 2.0
_MAX_TEXT = 8192
_MAX_NAMES = 24 * 1024  # bytes of names in one line: escaped they may double
_MAX_RESTARTS = 1000


class Channel:
    """Open from construction until bye(). Raises CaptureError when it cannot be opened; later
    failures close it for good and are silent, because the job must go on."""

    def __init__(self, job: Job, world: World) -> None:
        self.job = job
        self.library = Library(job.library)
        self.world = world
        self.handle = self._open()
        self.held = self.library.held
        self.free = self.library.free
        self.is_open = True
        self.late: set[int] = set()  # steps whose `go` did not come in time
        self.phase = ""
        self.slots: dict[str, int] = {}  # by "model/name"
        self.bytes: dict[int, int] = {}  # by slot
        self._buffer = create_string_buffer(LINE_BYTES)
        self._receive = self.held["receive"]
        self.free["keep_budget"](self.handle, job.keep_bytes)

    def _open(self) -> int:
        if self.job.socket:
            path = os.fsencode(self.job.socket)
            handle = self.library.free["open_socket"](path, _SEND_TIMEOUT_S)
        else:
            handle = self._open_file()
        if not handle:
            raise CaptureError(self.library.error(None))
        return int(handle)

    # A file of the same rank that is there already is a run before: it keeps its evidence.
    def _open_file(self) -> int | None:
        folder = os.path.join(self.job.evidence, self.world.name)
        os.makedirs(folder, exist_ok=True)
        for restart in range(self.world.restart, self.world.restart + _MAX_RESTARTS):
            path = os.path.join(folder, f"rank-{self.world.rank}.{restart}.jsonl")
            if not os.path.exists(path):
                self.world = self.world._replace(restart=restart)
                return self.library.free["open_file"](os.fsencode(path))
        return None

    # --- out

    def check(self, result: int) -> int:
        """Passes a result of the library on. A refusal raises CaptureError; so does the end of the
        channel, after which nothing is tried any more."""
        if result < 0:
            why = self.library.error(self.handle)
            self.is_open = self.free["flush"](self.handle) >= 0
            raise CaptureError(why)
        return result

    def send(self, record: dict[str, Any]) -> None:
        if self.is_open:
            text = json.dumps(record, allow_nan=False, separators=(",", ":"))
            self.check(self.held["send"](self.handle, text.encode()))

    def flush(self) -> None:
        if self.is_open:
            self.free["flush"](self.handle)

    def event(self, kind: str, step: int, micro: int, **fields: Any) -> None:
        """Fields that are None, and empty texts, are left out."""
        record: dict[str, Any] = {"type": "event", "event": kind, "step": step, "micro": micro}
        for key, value in fields.items():
            if value is not None and value != "":
                record[key] = _printable(value)
        for names in _split(record.pop("names", None)):
            self.send(record if names is None else {**record, "names": names})

    def enter(self, phase: str, step: int, micro: int) -> None:
        """Names the place in a crash or hang, so it is sent at once."""
        self.phase = phase
        self.event("phase", step, micro, phase=phase)
        self.flush()

    def leave(self, step: int, micro: int) -> None:
        """Nothing of ours is under way: what happens next has no name. Sent with the next flush."""
        self.phase = ""
        record = {"type": "event", "event": "phase", "step": step, "micro": micro, "phase": ""}
        self.send(record)

    def slot(self, model: str, name: str, tied_to: str, nbytes: int) -> int:
        owner = tied_to.encode() if tied_to else None
        slot = self.check(self.held["slot"](self.handle, _bytes(model), _bytes(name), owner))
        self.slots[f"{model}/{name}"] = slot
        self.bytes[slot] = nbytes
        return slot

    def mark(self, model: str, step: int, micro: int, stage: int) -> None:
        self.check(self.held["mark"](self.handle, _bytes(model), step, micro, stage))

    # A stage that is closed a second time, after more records.
    def mark_again(self, model: str, step: int, micro: int, stage: int, tensors: int) -> None:
        record = {"type": "mark", "step": step, "micro": micro, "stage": STAGES[stage]}
        self.send({**record, "model": model, "tensors": tensors})

    # --- in

    def poll(self) -> None:
        """Answers what the front has asked meanwhile; never waits."""
        while self.is_open:
            record = self._next(0.0)
            if record is None:
                return
            self._answer(record)

    def answer_until_go(self, step: int | None = None) -> bool:
        """Answers what is asked until `go` comes, of a step or of the whole program, or two seconds
        have passed: False."""
        from time import monotonic

        deadline = monotonic() + _EXIT_WAIT_S
        while self.is_open and self.job.socket:
            left = deadline - monotonic()
            record = self._next(max(0.0, left))
            if record is None:
                if left <= 0:
                    break
                continue
            if record.get("type") != "go":
                self._answer(record)
            elif step is not None or record.get("step") not in self.late:
                return True
        if step is not None:
            self.late.add(step)
        return False

    def _next(self, timeout_s: float) -> dict[str, Any] | None:
        receive = self._receive if timeout_s == 0 else self.free["receive"]
        length = receive(self.handle, timeout_s, self._buffer, LINE_BYTES)
        if length < 0:
            self.is_open = False  # the front has gone
        if length <= 0:
            return None
        record = json.loads(self._buffer.raw[:length])
        return record if isinstance(record, dict) else {}

    def _answer(self, record: dict[str, Any]) -> None:
        if record.get("type") != "want":
            return
        step, micro = int(record["step"]), int(record.get("micro", 0))
        answer: dict[str, Any] = {"type": "payload", "step": step, "micro": micro}
        answer["stage"] = record["stage"]
        try:
            answer.update(self._write_payload(record, step, micro))
        except Exception:
            answer.update(file="", bytes=0, truncated=True)
        self.send(answer)
        self.flush()

    def _write_payload(self, want: dict[str, Any], step: int, micro: int) -> dict[str, Any]:
        stage = STAGES.index(want["stage"])
        names = [name for name in want["names"] if name in self.slots]
        slots = [self.slots[name] for name in names]
        file = self._payload_name(step, micro, want["stage"])
        written = flag_array(max(1, len(slots)))
        path = os.fsencode(os.path.join(self.job.directory, file))
        budget = int(want.get("budget_bytes", 0))
        count = self.free["payload"](
            self.handle, path, step, micro, stage, slot_array(slots), len(slots), budget, written
        )
        if count <= 0:
            return {"file": "", "bytes": 0, "truncated": True}
        kept = [name for position, name in enumerate(names) if written[position]]
        size = sum(self.bytes[self.slots[name]] for name in kept)
        answer = {"file": file, "bytes": size, "truncated": len(kept) < len(want["names"])}
        if sum(len(name) + 3 for name in kept) < 32 * 1024:
            answer["names"] = kept
        return answer

    # Several wants of one moment get files of their own.
    def _payload_name(self, step: int, micro: int, stage: str) -> str:
        moment = f"step-{step}.micro-{micro}" if micro > 0 else f"step-{step}"
        stem = f"payload/rank-{self.world.rank}.{moment}.{stage}"
        name, number = f"{stem}.safetensors", 1
        while os.path.exists(os.path.join(self.job.directory, name)):
            number += 1
            name = f"{stem}.{number}.safetensors"
        return name

    # --- end

    def bye(self, status: int) -> None:
        if self.is_open:
            self.free["bye"](self.handle, status)
            self.is_open = False


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_MAX_TEXT].encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _split(names: Any) -> list[Any]:
    """Lists of names that fit into a line each; a word or nothing stays what it is."""
    if not isinstance(names, list):
        return [names]
    parts: list[list[str]] = [[]]
    size = 0
    for name in names:
        size += len(name) + 3
        if size > _MAX_NAMES and parts[-1]:
            parts.append([])
            size = len(name) + 3
        parts[-1].append(name)
    return parts
