# SPDX-License-Identifier: Apache-2.0
"""What the agent answers to the front, and what it says of what it cannot check."""

import json
import struct
from typing import Any

import pytest
from agent_front import Connection, Record, go_at_exit, run

LONG = """
ddp = DDP(Net())
optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
for step in range(STEPS):
    optimizer.zero_grad()
    for micro in range(2):
        loss = ddp(batch(step, micro)).square().mean()
        loss.backward()
    optimizer.step()
    show(loss)
"""
NAMES = ["Net/a.weight", "Net/b.bias", "Net/unknown"]


def script(steps: int) -> str:
    return LONG.replace("STEPS", str(steps))


def want(step: int, micro: int, stage: str = "reduced", budget: int = 1 << 20) -> Record:
    moment = {"type": "want", "step": step, "micro": micro, "stage": stage}
    return {**moment, "names": NAMES, "budget_bytes": budget}


def header(path: Any) -> Record:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length])


def test_wants_are_answered_at_exit() -> None:
    def answer(_: Connection, line: Record) -> list[Record]:
        if line.get("phase") != "exit":
            return []
        asked = [want(1, 1), want(1, 0, budget=8), want(0, 0, "start"), want(7, 0)]
        return [*asked, {"type": "go", "step": 1}]

    ran = run(script(2), answer=answer)
    assert ran.codes == [0, 0], ran.err
    full, small, start, never = ran.rank(0).of("payload")
    assert full["file"] == "payload/rank-0.step-1.micro-1.reduced.safetensors"
    assert (full["names"], full["bytes"], full["truncated"]) == (NAMES[:2], 136, True)
    assert set(header(ran.directory / full["file"])) - {"__metadata__"} == set(NAMES[:2])
    assert small["file"] in ("", "payload/rank-0.step-1.reduced.safetensors")
    assert (start["file"], never["file"]) == ("", "")
    assert ran.rank(0).lines[-1]["type"] == "bye"


def test_wants_are_answered_while_it_runs() -> None:
    def answer(connection: Connection, line: Record) -> list[Record]:
        if line["type"] == "mark" and (line["stage"], line["step"]) == ("after", 0):
            return [want(0, 1)]
        return go_at_exit(connection, line)

    ran = run(script(4), answer=answer)
    [payload] = ran.rank(1).of("payload")
    assert payload["names"] == NAMES[:2]
    order = [line.get("stage") or line["type"] for line in ran.rank(1).lines]
    assert order.index("reduced") < order.index("bye")


def test_no_copies_without_a_budget() -> None:
    def answer(_: Connection, line: Record) -> list[Record]:
        return [want(0, 1), {"type": "go", "step": 0}] if line.get("phase") == "exit" else []

    ran = run(script(1), answer=answer, keep_bytes=0)
    assert [p["file"] for p in ran.rank(0).of("payload")] == [""]


def test_a_silent_front_delays_the_end_by_two_seconds_only() -> None:
    ran = run(script(1), ranks=0, preamble=ALONE, farewell="", answer=lambda *_: [], timeout=60)
    assert ran.codes == [0]
    assert ran.rank(0).of("bye")[0]["status"] == 0


ALONE = """
import torch, torch.nn as nn
Net = lambda: nn.Linear(4, 2)
DDP = lambda net: net
batch = lambda step, micro=0: torch.ones(1, 4) * (step + micro + 1)
show = lambda loss: None
"""


def test_step_done_once_after_so_many_steps() -> None:
    ran = run(script(6), ranks=0, preamble=ALONE, farewell="", every=2, steps=4)
    rank = ran.rank(0)
    assert [e["step"] for e in rank.events("optimizer_step")] == [0, 1, 2, 4]
    [done] = rank.events("step_done")
    assert (done["step"], done["model"]) == (4, "Linear")


def test_exact_keeps_locals_too() -> None:
    def answer(_: Connection, line: Record) -> list[Record]:
        asked = {**want(1, 1, "local"), "names": ["Linear/weight"]}
        return [asked, {"type": "go", "step": 1}] if line.get("phase") == "exit" else []

    for exact in (True, False):
        ran = run(script(2), ranks=0, preamble=ALONE, farewell="", answer=answer, exact=exact)
        [payload] = ran.rank(0).of("payload")
        assert payload.get("names", []) == ["Linear/weight"] * exact


SHARDED = """
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.device_mesh import init_device_mesh
def train(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=.1)
    for step in range(2):
        optimizer.zero_grad()
        loss = net(batch(step)).square().mean()
        loss.backward()
        optimizer.step()
        show(loss)
mesh = init_device_mesh("cpu", (2,))
train(FullyShardedDataParallel(named("First"), device_id=torch.device("cpu")))
with torch.device("meta"):
    net = named("Second")
fully_shard(net.a, mesh=mesh)
fully_shard(net, mesh=mesh)
net.to_empty(device="cpu")
torch.manual_seed(3)
for p in net.parameters():
    nn.init.uniform_(p)
train(net)
from torch.distributed.tensor import DTensor, Replicate, distribute_module
def enter(module, inputs, mesh):
    return DTensor.from_local(inputs[0], mesh, [Replicate()])
def leave(module, output, mesh):
    return output.to_local()
train(distribute_module(named("Third"), mesh, input_fn=enter, output_fn=leave))
train(DDP(named("Fourth")))
"""


def test_sharded_models_are_declared_and_left_alone() -> None:
    ran = run(SHARDED)
    assert ran.codes == [0, 0], ran.err
    assert run(SHARDED, with_agent=False).losses == ran.losses
    for rank in (0, 1):
        connection = ran.rank(rank)
        assert [(w["model"], w["kind"]) for w in connection.of("wrapper")] == [
            ("First", "fsdp"),
            ("Second", "fsdp2"),
            ("Third", "dtensor"),
            ("Fourth", "ddp"),
        ]
        assert {line["model"] for line in connection.of("tensor")} == {"Fourth"}
        assert not [text for text in connection.notes() if "agent error" in text]


@pytest.mark.parametrize("ranks", [0])
def test_hello(ranks: int) -> None:
    ran = run(script(1), ranks=ranks, preamble=ALONE, farewell="", env={"SECRET": "x"})
    hello = ran.rank(0).hello
    assert hello["producer"] == "python"
    assert any(text.startswith("torch=") for text in hello["versions"])
    assert "OMP_NUM_THREADS=1" in hello["env"]
    assert not any("SECRET" in text for text in hello["env"])
