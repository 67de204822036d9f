# SPDX-License-Identifier: Apache-2.0
"""What the agent records of models under DistributedDataParallel, in every mode of it."""

import pytest
from agent_front import Connection, Ran, run

# One job, one model a case: each model has its own steps.
MODES = """
import contextlib
def train(module, forward="wrapper", micros=1, held_back=False, steps=2, clear="none", **options):
    ddp = DDP(module, **options)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
    for step in range(steps):
        if clear != "never":
            optimizer.zero_grad(set_to_none=clear == "none")
        for micro in range(micros):
            holds = held_back and micro < micros - 1
            with ddp.no_sync() if holds else contextlib.nullcontext():
                net = ddp if forward == "wrapper" else ddp.module
                loss = net(batch(step, micro)).square().mean() / micros
                loss.backward()
        optimizer.step()
        show(loss)
train(named("Bypass"), forward="module")
train(named("View"), gradient_as_bucket_view=True)
train(named("Static"), static_graph=True)
train(named("Unused"), find_unused_parameters=True)
train(named("HeldBack"), micros=3, held_back=True)
train(named("Synchronised"), micros=2)
train(named("Zeros"), clear="zero")
train(named("ZerosView"), clear="zero", gradient_as_bucket_view=True)
train(named("Forgotten"), clear="never")
train(named("Long"), steps=11)
class Norm(Net):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
    def forward(self, x):
        return self.norm(super().forward(x))
train(Norm())
train(named("Norm"), steps=1)
class Tied(Net):
    def __init__(self):
        super().__init__()
        self.c = nn.Linear(4, 8)
        self.c.weight = self.a.weight
    def forward(self, x):
        return super().forward(x) + self.c(x).mean()
train(Tied())
class Half(Net):
    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(2, 2)
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)
train(Half(), find_unused_parameters=True)
class Mixed(Net):
    def __init__(self):
        super().__init__()
        self.to(torch.bfloat16)
    def forward(self, x):
        return super().forward(x.bfloat16()).float()
train(Mixed())
"""


@pytest.fixture(scope="module")
def modes() -> Ran:
    return run(MODES, every=10)


@pytest.fixture(scope="module")
def ranks(modes: Ran) -> tuple[Connection, Connection]:
    assert modes.codes == [0, 0], modes.err
    return modes.rank(0), modes.rank(1)


def agree(ranks: tuple[Connection, Connection], model: str, stage: str, micro: int = 0) -> bool:
    """Whether all gradients of step 1 are equal on both ranks; differing must be all."""
    a, b = (rank.digests(stage, 1, micro, model) for rank in ranks)
    assert a and a.keys() == b.keys()
    equal = [a[name] == b[name] for name in a]
    assert all(equal) or not any(equal), equal
    return all(equal)


def micros(rank: Connection, model: str, kind: str, *keys: str) -> list[tuple]:
    return [tuple(e.get(k) for k in keys) for e in rank.events(kind, model=model)]


def test_losses_are_the_same_without_the_agent(modes: Ran) -> None:
    plain = run(MODES, with_agent=False)
    assert plain.losses == modes.losses
    assert len(modes.losses) > 50


def test_nothing_is_reported_missing(ranks: tuple[Connection, Connection]) -> None:
    for rank in ranks:
        assert rank.notes() == []
        assert rank.open_stages() == []
        assert [line["seq"] for line in rank.lines] == list(range(len(rank.lines)))
        assert rank.lines[-1] == {**rank.lines[-1], "type": "bye", "status": 0}


@pytest.mark.parametrize(
    "model", ["View", "Static", "Unused", "Zeros", "ZerosView", "Forgotten", "Norm", "Mixed"]
)
def test_wrapped_job(ranks: tuple[Connection, Connection], model: str) -> None:
    assert not agree(ranks, model, "local")
    assert agree(ranks, model, "reduced")
    assert agree(ranks, model, "final")
    assert micros(ranks[0], model, "wrapper_forward", "armed", "no_sync", "grad_mode") == [
        (True, False, True),
        (True, False, True),
    ]
    assert micros(ranks[0], model, "backward", "armed", "no_sync") == [(True, False)] * 2
    assert micros(ranks[0], model, "inner_forward") == []


def test_bypass(ranks: tuple[Connection, Connection]) -> None:
    assert not agree(ranks, "Bypass", "local")
    assert not agree(ranks, "Bypass", "reduced")
    assert not agree(ranks, "Bypass", "after")
    assert micros(ranks[0], "Bypass", "wrapper_forward") == []
    assert micros(ranks[0], "Bypass", "inner_forward", "grad_mode") == [(True,), (True,)]
    assert micros(ranks[0], "Bypass", "backward", "armed", "no_sync") == [(False, False)] * 2
    assert len(ranks[0].events("batch", model="Bypass")) == 2
    [(site,), _] = micros(ranks[0], "Bypass", "backward", "site")
    assert site.startswith("train.py:")


def test_batches_differ_by_rank(ranks: tuple[Connection, Connection]) -> None:
    a, b = ({e["digest"] for e in rank.events("batch", model="HeldBack")} for rank in ranks)
    assert len(a) == len(b) == 6
    assert not a & b


def test_order_within_a_step(ranks: tuple[Connection, Connection]) -> None:
    order = [
        line.get("event") or f"{line['stage']}"
        for line in ranks[0].lines
        if line["type"] in ("event", "mark") and line.get("model") == "Norm" and line["step"] == 1
    ]
    assert order == [
        "wrapper_forward",
        "batch",
        "next_forward",
        "start",  # the weights that this step's gradients are made at
        "grad_cleared",
        "backward",
        "local",
        "reduced",
        "final",
        "optimizer_step",
        "after",
    ]


def test_accumulation_under_no_sync(ranks: tuple[Connection, Connection]) -> None:
    rank = ranks[0]
    armed = [(0, False, True), (1, False, True), (2, True, False)]
    assert micros(rank, "HeldBack", "backward", "micro", "armed", "no_sync") == armed * 2
    for micro in range(3):
        assert not agree(ranks, "HeldBack", "local", micro)
        assert agree(ranks, "HeldBack", "reduced", micro) == (micro == 2)
    assert agree(ranks, "HeldBack", "final", 2)
    assert rank.tensors("final", 1, 0, "HeldBack") == {}
    assert micros(rank, "HeldBack", "optimizer_step", "step", "micro") == [(0, 2), (1, 2)]


def test_accumulation_reduced_each_time(ranks: tuple[Connection, Connection]) -> None:
    assert micros(ranks[0], "Synchronised", "backward", "armed") == [(True,)] * 4
    assert agree(ranks, "Synchronised", "reduced", 0)
    assert agree(ranks, "Synchronised", "reduced", 1)


@pytest.mark.parametrize("model", ["View", "Zeros", "ZerosView", "HeldBack"])
def test_clearing_is_said_once_a_step(ranks: tuple[Connection, Connection], model: str) -> None:
    said = micros(ranks[0], model, "grad_cleared", "step", "micro", "names")
    assert said == [(0, 0, "all"), (1, 0, "all")]


def test_forgotten_zero_grad_clears_nothing(ranks: tuple[Connection, Connection]) -> None:
    said = micros(ranks[0], "Forgotten", "grad_cleared", "step", "names")
    assert said == [(0, "all")]


def test_only_some_steps_are_checked(ranks: tuple[Connection, Connection]) -> None:
    starts = [(s, stage) for s, _, stage in ranks[0].stages("Long") if stage in ("start", "after")]
    assert starts == [
        (0, "start"),
        (0, "after"),
        (1, "start"),
        (1, "after"),
        (2, "start"),
        (2, "after"),
        (10, "start"),
        (10, "after"),
    ]
    steps = {
        line["step"] for line in ranks[0].lines if line.get("model") == "Long" and "step" in line
    }
    assert steps == {0, 1, 2, 10}


def test_buffers_are_recorded_where_they_must_agree(ranks: tuple[Connection, Connection]) -> None:
    a, b = (rank.tensors("next_forward", 1, 0, "Norm") for rank in ranks)
    names = {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    assert set(a) == names
    assert all(a[name]["digest"] == b[name]["digest"] for name in names)
    assert all(line["kind"] == "buffer" for line in a.values())
    after = [rank.digests("after", 1, 0, "Norm")["norm.running_mean"] for rank in ranks]
    assert after[0] != after[1]


def test_same_class_name_again(ranks: tuple[Connection, Connection]) -> None:
    assert [w["model"] for w in ranks[0].of("wrapper") if "Norm" in w["model"]] == [
        "Norm",
        "Norm 2",
    ]
    assert ranks[0].stages("Norm 2")[0] == (0, 0, "start")


def test_tied_parameter_is_recorded_once(ranks: tuple[Connection, Connection]) -> None:
    local = ranks[0].tensors("local", 0, 0, "Tied")
    assert set(local) == {"a.weight", "a.bias", "b.weight", "b.bias", "c.bias"}
    for stage in ("start", "after"):
        tie = ranks[0].tensors(stage, 0, 0, "Tied")["c.weight"]
        assert (tie["kind"], tie["tied_to"]) == ("param", "a.weight")


def test_unused_and_frozen(ranks: tuple[Connection, Connection]) -> None:
    start = ranks[0].tensors("start", 0, 0, "Half")
    assert start["frozen"]["requires_grad"] is False
    assert start["unused.weight"]["requires_grad"] is True
    local = ranks[0].tensors("local", 1, 0, "Half")
    assert "frozen" not in local
    assert local["unused.weight"]["state"] == "absent"
    assert local["a.weight"]["state"] == "finite"


def test_wrapper_record(ranks: tuple[Connection, Connection]) -> None:
    view = next(w for w in ranks[0].of("wrapper") if w["model"] == "View")
    assert (view["kind"], view["group"], view["reduce"]) == ("ddp", "world", "mean")
    assert (view["bucket_view"], view["static_graph"]) == (True, False)
    assert {"type": "group", "name": "world", "ranks": [0, 1]}.items() <= ranks[0].of("group")[
        0
    ].items()


def test_local_is_what_was_computed_here(ranks: tuple[Connection, Connection]) -> None:
    """reduced is the mean of locals, read off the l1 bound and the sketch's linearity."""
    import base64
    import struct

    def sketch(line: dict) -> list[float]:
        return list(struct.unpack("<32d", base64.b64decode(line["sketch"])))

    for model in ("View", "Static", "Unused", "Zeros"):
        for name, line in ranks[0].tensors("reduced", 1, 0, model).items():
            parts = [sketch(rank.tensors("local", 1, 0, model)[name]) for rank in ranks]
            for value, a, b in zip(sketch(line), *parts, strict=True):
                assert abs(value - (a + b) / 2) < 1e-6
