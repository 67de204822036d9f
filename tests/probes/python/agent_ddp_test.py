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
        (1, "after"),
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


CHANGES = """
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
def step(ddp, optimizer, number):
    optimizer.zero_grad()
    loss = ddp(batch(number)).square().mean()
    loss.backward()
    optimizer.step()
    show(loss)

# Unfrozen after wrapping, between forward and backward, and by a later group.
net = named("Thawed")
net.a.weight.requires_grad_(False)
net.b.bias.requires_grad_(False)
ddp = DDP(net)
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=.1)
step(ddp, optimizer, 0)
net.a.weight.requires_grad_(True)
optimizer.add_param_group({"params": [net.a.weight]})
step(ddp, optimizer, 1)
step(ddp, optimizer, 2)

# Hooks of the program's own, before and after ours are placed.
net = named("Hooked")
net.a.weight.register_hook(lambda g: g * 2)
ddp = DDP(net)
optimizer = torch.optim.SGD(net.parameters(), lr=.1)
step(ddp, optimizer, 0)
net.a.bias.register_hook(lambda g: torch.zeros_like(g))
step(ddp, optimizer, 1)

# Communication hooks.
def forgets_to_divide(state, bucket):
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda future: future.value()[0])
for name, hook, state in (
    ("Fp16", fp16_compress_hook, None),
    ("Sum", forgets_to_divide, None),
    ("Power", powerSGD_hook, PowerSGDState(None, start_powerSGD_iter=2)),
):
    ddp = DDP(named(name))
    ddp.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
    step(ddp, optimizer, 0)
ddp = DDP(named("Builtin"))
ddp._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
step(ddp, optimizer, 0)

# Rank-local buffers; a parameter left out; a sub-group.
net = named("Options")
DDP._set_params_and_buffers_to_ignore_for_model(net, ["b.bias"])
ddp = DDP(net, forward_sync_buffers=False)
optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
step(ddp, optimizer, 0)

# Actor and critic: one backward, two wrappers, two optimizers; the critic steps every time.
actor, critic = DDP(named("Actor")), DDP(named("Critic"))
first = torch.optim.SGD(actor.parameters(), lr=.1)
second = torch.optim.Adam(critic.parameters(), lr=.1)
for number in range(3):
    if number != 1:
        first.zero_grad()
        second.zero_grad()
        loss = actor(batch(number)).square().mean() + critic(batch(number)).square().mean()
        loss.backward()
        first.step()
    else:
        second.zero_grad()
        loss = critic(batch(number)).square().mean()
        loss.backward()
    second.step()
    show(loss)

# An evaluation and a step that raises and is caught do no harm.
ddp = DDP(named("Bumpy"))
optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
with torch.no_grad():
    ddp(batch(0))
step(ddp, optimizer, 0)
class Stop(Exception): pass
def stop(*_): raise Stop
handle = optimizer.register_step_post_hook(stop)
try:
    step(ddp, optimizer, 1)
except Stop:
    handle.remove()
step(ddp, optimizer, 2)

# Pickled and copied while watched.
import copy, io
net = named("Copied")
globals()["Copied"] = type(net)
ddp = DDP(net)
optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
step(ddp, optimizer, 0)
copied = copy.deepcopy(net)
torch.save(net, io.BytesIO())
assert all(not p._backward_hooks for p in copied.parameters())
assert "_compiled_call_impl" not in copied.__dict__
"""


@pytest.fixture(scope="module")
def changes() -> Ran:
    return run(CHANGES)


@pytest.fixture(scope="module")
def changed(changes: Ran) -> tuple[Connection, Connection]:
    assert changes.codes == [0, 0], changes.err
    for rank in (0, 1):
        assert changes.rank(rank).open_stages() == []
    return changes.rank(0), changes.rank(1)


def test_changes_leave_losses_alone(changes: Ran) -> None:
    assert run(CHANGES, with_agent=False).losses == changes.losses


def test_thawed_after_wrapping(changed: tuple[Connection, Connection]) -> None:
    rank = changed[0]
    assert set(rank.tensors("local", 0, 0, "Thawed")) == {"a.bias", "b.weight"}
    assert set(rank.tensors("local", 1, 0, "Thawed")) == {"a.bias", "a.weight", "b.weight"}
    assert rank.tensors("local", 1, 0, "Thawed")["a.weight"]["state"] == "finite"
    # DDP does not know of it: that is the bug to be found.
    a, b = (r.digests("reduced", 1, 0, "Thawed") for r in changed)
    assert [name for name in a if a[name] != b[name]] == ["a.weight"]


def test_own_hooks_come_first(changed: tuple[Connection, Connection]) -> None:
    rank = changed[0]
    assert any("Hooked/a.weight has gradient hooks" in text for text in rank.notes())
    assert rank.tensors("local", 1, 0, "Hooked")["a.bias"]["state"] == "zero"
    assert rank.tensors("local", 0, 0, "Hooked")["a.bias"]["state"] == "finite"


def test_communication_hooks(changed: tuple[Connection, Connection]) -> None:
    found = {
        w["model"]: (w["reduce"], w["wire_dtype"], w["hook"]) for w in changed[0].of("wrapper")
    }
    stock = "torch.distributed.algorithms.ddp_comm_hooks."
    assert found["Fp16"] == ("mean", "f16", f"{stock}default_hooks.fp16_compress_hook")
    assert found["Sum"] == ("mean", "", "__main__.forgets_to_divide")
    assert found["Power"] == ("lossy", "", f"{stock}powerSGD_hook.powerSGD_hook")
    assert found["Builtin"] == ("mean", "f16", "fp16_compress")


def test_wrapper_options(changed: tuple[Connection, Connection]) -> None:
    wrapper = next(w for w in changed[0].of("wrapper") if w["model"] == "Options")
    assert (wrapper["buffers"], wrapper["ignored"]) == ("rank_local", ["b.bias"])


def test_two_models_in_one_backward(changed: tuple[Connection, Connection]) -> None:
    rank = changed[0]
    assert [e["step"] for e in rank.events("backward", model="Actor")] == [0, 1]
    assert [e["step"] for e in rank.events("backward", model="Critic")] == [0, 1, 2]
    assert [e["optimizer"] for e in rank.events("optimizer_step", model="Critic")] == ["Adam"] * 3
    for model, step in (("Actor", 1), ("Critic", 1), ("Critic", 2)):
        a, b = (r.digests("reduced", step, 0, model) for r in changed)
        assert a and a == b


def test_step_that_raised(changed: tuple[Connection, Connection]) -> None:
    rank = changed[0]
    forwards = [(e["armed"], e["grad_mode"]) for e in rank.events("wrapper_forward", model="Bumpy")]
    assert forwards[0] == (False, False)
    assert len(rank.events("backward", model="Bumpy", step=0)) == 1
    # Nobody saw the second step end: the third backward belongs to it.
    assert [(e["step"], e["micro"]) for e in rank.events("optimizer_step", model="Bumpy")] == [
        (0, 0),
        (1, 1),
    ]
