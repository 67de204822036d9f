# SPDX-License-Identifier: Apache-2.0
"""Optimizers, scalers, clipping and collectives as the agent sees them."""

import pytest
from agent_front import Connection, Ran, run

OPTIMIZERS = """
def train(name, make, steps=2, wrap=True, scaler=None, after=None, overflow=None, base=Net):
    net = named(name, base)
    net = DDP(net) if wrap else net
    optimizer = make(net.parameters())
    for step in range(steps):
        optimizer.zero_grad()
        loss = net(batch(step)).square().mean()
        if step == overflow:
            loss = loss * float("inf")
        (scaler.scale(loss) if scaler else loss).backward()
        if after:
            after(net, optimizer)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        show(loss)
def sgd(parameters, **options):
    return torch.optim.SGD(parameters, lr=.1, **options)
def with_closure(name, optimizer_of, steps=2):
    ddp = DDP(named(name))
    optimizer = optimizer_of(ddp.parameters())
    for step in range(steps):
        def closure():
            optimizer.zero_grad()
            loss = ddp(batch(step)).square().mean()
            loss.backward()
            return loss
        show(optimizer.step(closure))
with_closure("Lbfgs", lambda p: torch.optim.LBFGS(p, lr=.1, max_iter=3))
with_closure("Closure", sgd)

def clip(net, optimizer, scaler=None):
    if scaler:
        scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_((p for p in net.parameters()), .01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.)
train("Scaled", sgd, 3, scaler=scaler, overflow=1, after=lambda n, o: clip(n, o, scaler))
train("Implicit", sgd, scaler=torch.amp.GradScaler("cpu", init_scale=1024.))
fused = lambda parameters: sgd(parameters, fused=True)
train("Fused", fused, 3, scaler=torch.amp.GradScaler("cpu", init_scale=1024.), overflow=1)
train("Clipped", sgd, after=clip)
def clip_some(net, optimizer):
    torch.nn.utils.clip_grad_norm_(net.module.a.parameters(), .01)
train("Partly", sgd, after=clip_some)
def clip_parts(net, optimizer):
    norm = torch.nn.utils.get_total_norm([p.grad for p in net.parameters()])
    torch.nn.utils.clip_grads_with_norm_(net.parameters(), .01, norm)
train("Parts", sgd, after=clip_parts)
train("Values", sgd, after=lambda n, o: torch.nn.utils.clip_grad_value_(n.parameters(), .001))

def reduce(net, optimizer):
    for p in net.parameters():
        dist.all_reduce(p.grad)
        p.grad /= size
def reduce_and_clip(net, optimizer):
    reduce(net, optimizer)
    clip(net, optimizer)
train("Manual", sgd, wrap=False, after=reduce_and_clip)
def reduce_flat(net, optimizer):
    flat = torch.cat([p.grad.flatten() for p in net.parameters()])
    dist.all_reduce(flat)
    at = 0
    for p in net.parameters():
        p.grad.copy_(flat[at:at + p.numel()].view_as(p) / size)
        at += p.numel()
train("Flat", sgd, wrap=False, after=reduce_flat)

from torch.distributed.optim import ZeroRedundancyOptimizer
train("Zero", lambda p: ZeroRedundancyOptimizer(p, torch.optim.Adam, lr=.1))
class Mine(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)
sgd([torch.zeros(1, requires_grad=True)])
train("Subclass", lambda p: Mine(p, lr=.1))
def hooked(parameters):
    optimizer = sgd(parameters)
    def double(optimizer, args, kwargs):
        for p in optimizer.param_groups[0]["params"]:
            p.grad *= 2
    optimizer.register_step_pre_hook(double)
    return optimizer
train("Doubled", hooked)

w = torch.zeros(3, 4, requires_grad=True)
optimizer = sgd([w])
for step in range(2):
    optimizer.zero_grad()
    loss = (w - batch(step)).square().mean()
    loss.backward()
    optimizer.step()
    show(loss)

# Two optimizers of one root, stepped together and in turns.
net = named("Pair")
first, second = sgd(net.a.parameters()), sgd(net.b.parameters())
for step in range(2):
    first.zero_grad(); second.zero_grad()
    loss = net(batch(step)).square().mean()
    loss.backward()
    first.step(); second.step()
    show(loss)
class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.g, self.d = nn.Linear(4, 4), nn.Linear(4, 1)
net = Gan()
g, d = sgd(net.g.parameters()), sgd(net.d.parameters())
for step in range(2):
    d.zero_grad()
    loss = net.d(net.g(batch(step)).detach()).square().mean()
    loss.backward()
    d.step()
    g.zero_grad()
    loss = net.d(net.g(batch(step))).square().mean()
    loss.backward()
    g.step()
    show(loss)

# Joined ranks run a different number of steps.
from torch.distributed.algorithms.join import Join
ddp = DDP(named("Joined"))
optimizer = sgd(ddp.parameters())
with Join([ddp]):
    for step in range(1 + rank):
        optimizer.zero_grad()
        loss = ddp(batch(step)).square().mean()
        loss.backward()
        optimizer.step()
        show(loss)
"""


@pytest.fixture(scope="module")
def optimizers() -> Ran:
    return run(OPTIMIZERS)


@pytest.fixture(scope="module")
def ranks(optimizers: Ran) -> tuple[Connection, Connection]:
    assert optimizers.codes == [0, 0], optimizers.err
    for rank in (0, 1):
        notes = optimizers.rank(rank).notes()
        assert not [text for text in notes if "agent error" in text], notes
    return optimizers.rank(0), optimizers.rank(1)


def agree(
    ranks: tuple[Connection, Connection], model: str, stage: str, step: int = 1, micro: int = 0
) -> bool:
    a, b = (rank.digests(stage, step, micro, model) for rank in ranks)
    assert a and a.keys() == b.keys()
    return a == b


def told(rank: Connection, model: str, kind: str, *keys: str) -> list[tuple]:
    return [tuple(e.get(k) for k in keys) for e in rank.events(kind, model=model)]


def moments(rank: Connection, model: str, stage: str) -> list[tuple[int, int]]:
    return [(step, micro) for step, micro, name in rank.stages(model) if name == stage]


def test_losses_are_the_same_without_the_agent(optimizers: Ran) -> None:
    assert run(OPTIMIZERS, with_agent=False).losses == optimizers.losses


def test_every_stage_is_closed(ranks: tuple[Connection, Connection]) -> None:
    for rank in ranks:
        counts: dict[tuple, int] = {}
        for line in rank.of("tensor"):
            key = (line["model"], line["step"], line["micro"], line["stage"])
            counts[key] = counts.get(key, 0) + 1
        marks = {
            (m["model"], m["step"], m["micro"], m["stage"]): m["tensors"] for m in rank.of("mark")
        }
        assert counts == {key: count for key, count in marks.items() if count}


def test_closure_that_runs_several_backwards(ranks: tuple[Connection, Connection]) -> None:
    every = [(step, micro) for step in range(2) for micro in range(3)]
    assert moments(ranks[0], "Lbfgs", "final") == every
    assert told(ranks[0], "Lbfgs", "optimizer_step", "step", "micro") == [(0, 2), (1, 2)]
    assert told(ranks[0], "Lbfgs", "grad_cleared", "step", "micro", "names") == [
        (*moment, "all") for moment in every
    ]
    assert all(agree(ranks, "Lbfgs", "final", *moment) for moment in every)


def test_closure(ranks: tuple[Connection, Connection]) -> None:
    step = ["start", "local", "reduced", "final", "after"]
    assert [stage for _, _, stage in ranks[0].stages("Closure")] == step * 2


def test_scaler_that_skips(ranks: tuple[Connection, Connection]) -> None:
    rank = ranks[0]
    steps = told(rank, "Scaled", "optimizer_step", "step", "skipped")
    assert steps == [(0, False), (1, True), (2, False)]
    assert told(rank, "Scaled", "unscale", "step", "scale") == [(0, 1024), (1, 1024), (2, 512)]
    assert moments(rank, "Scaled", "final") == moments(rank, "Scaled", "after") == [(0, 0), (2, 0)]
    assert {t["state"] for t in rank.tensors("local", 1, 0, "Scaled").values()} == {"nonfinite"}
    [first, bad, _] = told(rank, "Scaled", "clip", "norm", "max_norm", "names")
    assert (first[0] > 0.01, *first[1:]) == (True, 0.01, "all")
    assert bad[0] is None


def test_order_of_unscale_and_clip(ranks: tuple[Connection, Connection]) -> None:
    order = [
        line.get("event", line.get("stage"))
        for line in ranks[0].lines
        if line.get("model") == "Scaled" and line.get("step") == 0 and line["type"] != "tensor"
    ]
    assert order[order.index("reduced") :] == [
        "reduced",
        "unscale",
        "clip",
        "final",
        "optimizer_step",
        "after",
    ]


def test_scaler_unscales_by_itself(ranks: tuple[Connection, Connection]) -> None:
    assert told(ranks[0], "Implicit", "unscale", "scale", "names") == [(1024, "all")] * 2
    reduced = ranks[0].tensors("reduced", 1, 0, "Implicit")
    for name, line in ranks[0].tensors("final", 1, 0, "Implicit").items():
        assert line["l2"] * 1024 == pytest.approx(reduced[name]["l2"])


def test_fused_optimizer_asks_the_scaler_itself(ranks: tuple[Connection, Connection]) -> None:
    rank = ranks[0]
    assert told(rank, "Fused", "optimizer_step", "step", "skipped") == [
        (0, False),
        (1, True),
        (2, False),
    ]
    # Nothing was divided before the step: the kernel does it.
    assert told(rank, "Fused", "unscale") == []
    assert rank.digests("reduced", 0, 0, "Fused") == rank.digests("final", 0, 0, "Fused")


def test_clipping(ranks: tuple[Connection, Connection]) -> None:
    rank = ranks[0]
    for model in ("Clipped", "Parts"):
        [(norm, max_norm, names), _] = told(rank, model, "clip", "norm", "max_norm", "names")
        assert (max_norm, names) == (0.01, "all")
        reduced = rank.tensors("reduced", 0, 0, model)
        assert norm == pytest.approx(sum(t["l2"] ** 2 for t in reduced.values()) ** 0.5)
        for name, line in rank.tensors("final", 0, 0, model).items():
            assert line["l2"] == pytest.approx(reduced[name]["l2"] * 0.01 / (norm + 1e-6), rel=1e-4)
    [(names,), _] = told(rank, "Partly", "clip", "names")
    assert names == ["a.weight", "a.bias"]
    assert any("Values were clipped by value" in text for text in rank.notes())


def test_reduction_by_hand(ranks: tuple[Connection, Connection]) -> None:
    rank = ranks[0]
    assert rank.of("wrapper") and not [w for w in rank.of("wrapper") if w["model"] == "Manual"]
    assert not agree(ranks, "Manual", "local")
    assert agree(ranks, "Manual", "reduced")
    names = ["a.weight", "a.bias", "b.weight", "b.bias"]
    said = told(rank, "Manual", "collective", "op", "reduce", "group", "dtype", "bytes", "names")
    sizes = [128, 32, 64, 8]
    each = [
        ("all_reduce", "sum", "world", "f32", bytes_, [name])
        for name, bytes_ in zip(names, sizes, strict=True)
    ]
    assert said == each * 2
    assert told(rank, "Manual", "backward", "armed", "no_sync") == [(None, None)] * 2
    reduced = rank.tensors("reduced", 1, 0, "Manual")
    final = rank.tensors("final", 1, 0, "Manual")
    assert all(reduced[name]["digest"] != final[name]["digest"] for name in names)


def test_reduction_by_hand_through_one_buffer(ranks: tuple[Connection, Connection]) -> None:
    assert agree(ranks, "Flat", "reduced")
    flat = [e for e in ranks[0].events("collective") if e["bytes"] == 232]
    assert len(flat) == 2 and not any("names" in e for e in flat)


@pytest.mark.parametrize("model", ["Zero", "Subclass"])
def test_nested_steps_are_one(ranks: tuple[Connection, Connection], model: str) -> None:
    outer = {"Zero": "ZeroRedundancyOptimizer", "Subclass": "Mine"}[model]
    assert told(ranks[0], model, "optimizer_step", "optimizer", "names") == [(outer, "all")] * 2
    assert agree(ranks, model, "after")


def test_step_hooks_of_the_program_run_before(ranks: tuple[Connection, Connection]) -> None:
    reduced = ranks[0].tensors("reduced", 1, 0, "Doubled")
    for name, line in ranks[0].tensors("final", 1, 0, "Doubled").items():
        assert line["l2"] == 2 * reduced[name]["l2"]


def test_parameters_of_no_module(ranks: tuple[Connection, Connection]) -> None:
    assert set(ranks[0].tensors("local", 1, 0, "optimizer")) == {"group0.0"}
    assert len(told(ranks[0], "optimizer", "optimizer_step")) == 2


def test_two_optimizers_in_one_step(ranks: tuple[Connection, Connection]) -> None:
    rank = ranks[0]
    assert told(rank, "Pair", "optimizer_step", "step", "names") == [
        (step, names)
        for step in range(2)
        for names in (["a.weight", "a.bias"], ["b.weight", "b.bias"])
    ]
    before, after = (rank.digests("after", step, 0, "Pair") for step in (0, 1))
    assert len(after) == 4
    assert all(before[name] != after[name] for name in after)


def test_optimizers_in_turns(ranks: tuple[Connection, Connection]) -> None:
    rank = ranks[0]
    assert told(rank, "Gan", "optimizer_step", "step", "names") == [
        (0, ["d.weight", "d.bias"]),
        (1, ["g.weight", "g.bias"]),
        (2, ["d.weight", "d.bias"]),
    ]
    for step in range(3):
        assert len(rank.digests("after", step, 0, "Gan")) == 4


def test_joined_ranks(ranks: tuple[Connection, Connection]) -> None:
    steps = [[e["step"] for e in r.events("optimizer_step", model="Joined")] for r in ranks]
    assert steps == [[0], [0, 1]]
    assert all("join" in rank.notes() for rank in ranks)
