#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for gradcheck-rank --zygote FD in tests without LibTorch: same protocol, made-up
evidence of one tensor that all ranks agree on. GRADCHECK_FAKE says what rank 1 does instead:
kill, hang, exit, raise, garbage, endless_line, hang_at_exit, silent;
or what all do: stale_payload, stray_payload, no_payload (rank 1 only)."""

import array
import base64
import json
import os
import signal
import socket
import struct
import sys
import time
from typing import Any

BEHAVIOUR = os.environ.get("GRADCHECK_FAKE", "")


MASK = (1 << 64) - 1


def xxh3_128_of_four_bytes(data: bytes) -> str:
    """XXH3-128 of four bytes, seed 0: the branch for 4 to 8 bytes of the reference."""
    low = int.from_bytes(data, "little")
    flip = int.from_bytes(bytes.fromhex("ded46de9839097db"), "little")
    flip ^= int.from_bytes(bytes.fromhex("7240a4a4b7b3671f"), "little")
    product = ((low | low << 32) ^ flip) * (0x9E3779B185EBCA87 + (4 << 2))
    low, high = product & MASK, product >> 64
    high = (high + (low << 1)) & MASK
    low ^= high >> 3
    low ^= low >> 35
    low = low * 0x9FB21C651E98DF25 & MASK
    low ^= low >> 28
    high ^= high >> 37
    high = high * 0x165667919E3779F9 & MASK
    high ^= high >> 32
    return f"{high:016x}{low:016x}"


class Rank:
    """One forked rank: numbers its lines, as the evidence format asks."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.lines = 0
        self.incoming = channel.makefile("r")

    def send(self, record: str, **fields: Any) -> None:
        line = {"type": record, "seq": self.lines} | fields
        self.channel.sendall((json.dumps(line) + "\n").encode())
        self.lines += 1

    def phase(self, name: str) -> None:
        self.send("event", event="phase", phase=name, step=0, micro=0)

    def tensor(self, stage: str, kind: str, value: float, **fields: Any) -> None:
        bucket = [value] + [0.0] * 31
        self.send(
            "tensor",
            step=0,
            micro=0,
            stage=stage,
            kind=kind,
            model="policy",
            name="w",
            shape=[1],
            dtype="f32",
            state="finite",
            digest=xxh3_128_of_four_bytes(struct.pack("<f", value)),
            n=1,
            nan=0,
            inf=0,
            zeros=0,
            l1=abs(value),
            l2=abs(value),
            max_abs=abs(value),
            min=value,
            max=value,
            sketch=base64.b64encode(struct.pack("<32d", *bucket)).decode(),
            **fields,
        )
        self.send("mark", step=0, micro=0, stage=stage, model="policy", tensors=1)

    def answer_wants(self, directory: str, rank: int, values: dict[str, float]) -> None:
        for line in self.incoming:
            record = json.loads(line)
            if record["type"] == "go":
                return
            stage = record["stage"]
            moment = {"step": 0, "micro": 0, "stage": stage}
            if BEHAVIOUR == "no_payload" and rank == 1:
                self.send("payload", file="", names=[], bytes=0, truncated=True, **moment)
                continue
            header = {"policy/w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
            text = json.dumps(header).encode()
            file = f"payload/rank-{rank}.step-0.{stage}.safetensors"
            value = values[stage] + (BEHAVIOUR == "stale_payload")
            with open(os.path.join(directory, file), "wb") as out:
                out.write(struct.pack("<Q", len(text)) + text + struct.pack("<f", value))
            named = f"payload/../{file}" if BEHAVIOUR == "stray_payload" else file
            self.send("payload", file=named, names=["policy/w"], bytes=4, truncated=False, **moment)


def misbehave(rank: Rank) -> None:
    print("last words of rank 1", file=sys.stderr, flush=True)
    if BEHAVIOUR == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif BEHAVIOUR in {"hang", "silent"}:
        time.sleep(600)
    elif BEHAVIOUR == "exit":
        os._exit(0)
    elif BEHAVIOUR == "garbage":
        rank.channel.sendall(b"{not json\n")
    elif BEHAVIOUR == "endless_line":
        rank.channel.sendall(b"x" * 10_000_000 + b"\n")
    elif BEHAVIOUR == "raise":
        error = {"error_type": "RuntimeError", "text": "made-up failure", "phase": "forward"}
        rank.send("event", event="exception", step=0, micro=0, **error)
        rank.send("bye", status=1, lines=rank.lines)
        os._exit(1)


def rank_main(channel: socket.socket) -> None:
    rank = Rank(channel)
    run = json.loads(rank.incoming.readline())
    number, world = run["rank"], run["world_size"]
    if number == 1 and BEHAVIOUR == "silent":
        misbehave(rank)
    identity = {"schema": "evidence-1", "run": run["run"], "world": "fake"}
    rank.send("hello", rank=number, world_size=world, pid=os.getpid(), **identity)
    rank.phase("rendezvous")
    rank.phase("construct")
    rank.send("group", name="world", ranks=list(range(world)))
    rank.send("wrapper", model="policy", kind="ddp", group="world", reduce="mean")
    rank.tensor("start", "param", 1.0, requires_grad=True)
    rank.phase("forward")
    if number == 1:
        misbehave(rank)
    batch = f"{number + int(run['program']['loss_scale']) * 100:032x}"
    rank.send("event", event="batch", step=0, micro=0, model="policy", digest=batch)
    rank.send("event", event="wrapper_forward", step=0, micro=0, armed=True, grad_mode=True)
    rank.send("event", event="backward", step=0, micro=0, model="policy", armed=True)
    mean = sum(range(1, world + 1)) / world
    rank.tensor("local", "grad", float(number + 1))
    rank.tensor("reduced", "grad", mean)
    rank.tensor("final", "grad", mean)
    step = {"event": "optimizer_step", "optimizer": "SGD", "names": "all", "skipped": False}
    rank.send("event", step=0, micro=0, model="policy", **step)
    rank.tensor("after", "param", 0.5, requires_grad=True)
    rank.send("event", event="step_done", step=0, micro=0)
    rank.answer_wants(run["directory"], number, {"local": float(number + 1), "reduced": mean})
    rank.send("bye", status=0, lines=rank.lines)
    if number == 1 and BEHAVIOUR == "hang_at_exit":
        time.sleep(600)
    os._exit(0)


def start(control: socket.socket, descriptors: list[int], ranks: int) -> dict[int, int]:
    pids = {}
    for number in range(ranks):
        pid = os.fork()
        if pid == 0:
            control.close()
            os.dup2(descriptors[ranks + number], 2)
            channel = socket.socket(fileno=os.dup(descriptors[number]))
            for descriptor in descriptors:
                os.close(descriptor)
            rank_main(channel)
        pids[pid] = number
    for descriptor in descriptors:
        os.close(descriptor)
    control.send(json.dumps({"type": "started", "pids": list(pids)}).encode())
    return pids


def reap(control: socket.socket, pids: dict[int, int]) -> None:
    for pid in list(pids):
        done, status = os.waitpid(pid, os.WNOHANG)
        if not done:
            continue
        code = os.waitstatus_to_exitcode(status)
        packet = {"type": "exit", "rank": pids.pop(pid), "pid": pid}
        packet |= {"status": max(code, 0), "signal": max(-code, 0)}
        control.send(json.dumps(packet).encode())


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[2]))
    ready = {"type": "ready", "torch": "0.0.0", "gloo": True, "nccl": False, "cuda": False}
    control.send(json.dumps(ready | {"pid": os.getpid()}).encode())
    control.settimeout(0.01)
    pids: dict[int, int] = {}
    while True:
        reap(control, pids)
        try:
            text, ancillary, _, _ = control.recvmsg(8192, socket.CMSG_SPACE(1024))
        except TimeoutError:
            continue
        if not text:
            break
        descriptors = array.array("i")
        for _, _, data in ancillary:
            descriptors.frombytes(data)
        pids |= start(control, list(descriptors), json.loads(text)["ranks"])
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


main()
