# SPDX-License-Identifier: Apache-2.0
"""Backwards that nest, escape or are compiled."""

import pytest
from agent_front import Connection, Ran, run

GRAPHS = """
from torch.utils.checkpoint import checkpoint
def train(ddp, loss_of, steps=2, **kwargs):
    optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(ddp, step)
        optimizer.step()
        show(loss)
def plain(ddp, step):
    loss = ddp(batch(step)).square().mean()
    loss.backward()
    return loss

class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.twice = False
    def forward(self, x):
        x = x.requires_grad_()
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        if self.twice:
            x = checkpoint(self.blocks[0], x, use_reentrant=self.reentrant)
        return x
class Reentrant(Deep):
    reentrant = True
class Saved(Deep):
    reentrant = False
class Twice(Deep):
    reentrant = True
    def __init__(self):
        super().__init__()
        self.twice = True
train(DDP(Reentrant()), plain)
train(DDP(Saved()), plain)
train(DDP(Twice(), static_graph=True), plain, steps=3)

# autograd.grad fires leaf hooks and adds nothing; a gradient penalty does both.
def penalty(ddp, step):
    loss = ddp(batch(step)).square().mean()
    gradients = torch.autograd.grad(loss, list(ddp.module.parameters()), create_graph=True)
    total = loss + sum(g.square().sum() for g in gradients)
    total.backward()
    return total
net = named("Penalty")
train(type("Bare", (), {"__call__": lambda s, x: net(x), "module": net,
      "parameters": lambda s: net.parameters()})(), penalty)

# One wrapped backward and a raw one: the second is never reduced.
def two(ddp, step):
    loss = ddp(batch(step)).square().mean()
    loss.backward()
    other = ddp.module(batch(step, 1)).square().mean()
    other.backward()
    return loss + other
train(DDP(named("Two")), two)

# A stray arm: the wrapper runs, the loss comes from the bare module.
def stray(ddp, step):
    ddp(batch(step))
    loss = ddp.module(batch(step)).square().mean()
    loss.backward()
    return loss
train(DDP(named("Stray")), stray)

# The gradient is reduced by hand after a bypass, and after no_sync.
def by_hand(ddp, step):
    loss = ddp.module(batch(step)).square().mean()
    loss.backward()
    for p in ddp.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    return loss
train(DDP(named("ByHand")), by_hand)

# A backward that raises and is done again.
class Fails(torch.autograd.Function):
    on = False
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        if Fails.on:
            raise MemoryError
        return g
def again(net, step):
    for Fails.on in (True, False):
        net.zero_grad()
        try:
            loss = (net.b(Fails.apply(torch.tanh(net.a(batch(step)))))).square().mean()
            loss.backward()
        except MemoryError:
            pass
    return loss
train(named("Again"), again)

# Gradients given to backward(inputs=…) only.
def some(net, step):
    loss = net(batch(step)).square().mean()
    loss.backward(inputs=[net.a.weight])
    return loss
train(named("Some"), some)

# An optimizer that steps inside the backward cannot be checked, and is not.
net = named("Fused")
optimizers = {p: torch.optim.SGD([p], lr=.1) for p in net.parameters()}
def fused(p):
    optimizers[p].step()
    optimizers[p].zero_grad()
for p in net.parameters():
    p.register_post_accumulate_grad_hook(fused)
for step in range(2):
    loss = net(batch(step)).square().mean()
    loss.backward()
    show(loss)

# Sparse gradients are read as what they stand for.
class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(4, 3, sparse=True)
    def forward(self, x):
        return self.rows(x)
train(Table(), lambda net, step: (lambda l: (l.backward(), l)[1])(net(torch.tensor([rank])).sum()))
"""


@pytest.fixture(scope="module")
def graphs() -> Ran:
    return run(GRAPHS)


@pytest.fixture(scope="module")
def ranks(graphs: Ran) -> tuple[Connection, Connection]:
    assert graphs.codes == [0, 0], graphs.err
    for rank in (0, 1):
        assert graphs.rank(rank).open_stages() == []
        assert not [text for text in graphs.rank(rank).notes() if "agent error" in text]
    return graphs.rank(0), graphs.rank(1)


def differing(
    ranks: tuple[Connection, Connection], model: str, stage: str, step: int = 1, micro: int = 0
) -> tuple[int, int]:
    a, b = (rank.digests(stage, step, micro, model) for rank in ranks)
    return sum(a[name] != b[name] for name in a), len(a)


def test_losses_are_the_same_without_the_agent(graphs: Ran) -> None:
    assert run(GRAPHS, with_agent=False).losses == graphs.losses


@pytest.mark.parametrize("model", ["Reentrant", "Saved", "Twice"])
def test_checkpointing_is_one_backward(ranks: tuple[Connection, Connection], model: str) -> None:
    assert {e["micro"] for e in ranks[0].events("backward", model=model)} == {0}
    assert differing(ranks, model, "local") == (6, 6)
    assert differing(ranks, model, "reduced") == (0, 6)
    # A block that is recomputed in the backward is no bypass.
    assert ranks[0].events("inner_forward", model=model) == []


def test_several_firings_add_up(ranks: tuple[Connection, Connection]) -> None:
    import base64
    import struct

    def sketch(line: dict) -> list[float]:
        return list(struct.unpack("<32d", base64.b64decode(line["sketch"])))

    for name, line in ranks[0].tensors("reduced", 1, 0, "Twice").items():
        parts = [sketch(rank.tensors("local", 1, 0, "Twice")[name]) for rank in ranks]
        for value, a, b in zip(sketch(line), *parts, strict=True):
            assert abs(value - (a + b) / 2) < 1e-5


def test_autograd_grad_is_no_backward(ranks: tuple[Connection, Connection]) -> None:
    events = ranks[0].events("backward", model="Penalty")
    assert [(e["step"], e["micro"]) for e in events] == [(0, 0), (1, 0)]
    local, reduced = (ranks[0].digests(s, 1, 0, "Penalty") for s in ("local", "reduced"))
    assert local == reduced


def test_a_raw_backward_after_a_wrapped_one(ranks: tuple[Connection, Connection]) -> None:
    events = ranks[0].events("backward", model="Two", step=1)
    assert [(e["micro"], e["armed"]) for e in events] == [(0, True), (1, False)]
    assert differing(ranks, "Two", "reduced", 1, 0) == (0, 4)
    assert differing(ranks, "Two", "reduced", 1, 1) == (4, 4)


def test_stray_arm(ranks: tuple[Connection, Connection]) -> None:
    rank = ranks[0]
    assert [e["armed"] for e in rank.events("backward", model="Stray")] == [True, True]
    assert [e["armed"] for e in rank.events("wrapper_forward", model="Stray")] == [True, True]
    assert len(rank.events("inner_forward", model="Stray")) == 2
    assert differing(ranks, "Stray", "reduced") == (0, 4)


def test_reduced_by_hand_after_a_bypass(ranks: tuple[Connection, Connection]) -> None:
    assert differing(ranks, "ByHand", "local") == (4, 4)
    assert differing(ranks, "ByHand", "reduced") == (0, 4)
    collectives = ranks[0].events("collective", model="ByHand", step=1)
    assert [(e["op"], e["reduce"], e["names"]) for e in collectives] == [
        ("all_reduce", "mean", [name]) for name in ("a.weight", "a.bias", "b.weight", "b.bias")
    ]


def test_backward_that_raised(ranks: tuple[Connection, Connection]) -> None:
    events = ranks[0].events("backward", model="Again", step=1)
    assert [e["micro"] for e in events] == [0, 1]
    local = ranks[0].tensors("local", 1, 0, "Again")
    assert {name: line["state"] for name, line in local.items()} == {
        "a.weight": "absent",
        "a.bias": "absent",
        "b.weight": "finite",
        "b.bias": "finite",
    }
    assert ranks[0].digests("local", 1, 1, "Again") == ranks[0].digests("final", 1, 1, "Again")


def test_backward_of_some_inputs(ranks: tuple[Connection, Connection]) -> None:
    states = {n: t["state"] for n, t in ranks[0].tensors("local", 1, 0, "Some").items()}
    assert states.pop("a.weight") == "finite"
    assert set(states.values()) == {"absent"}


def test_optimizer_in_backward_is_given_up(ranks: tuple[Connection, Connection]) -> None:
    assert any("not checked: Fused" in text for text in ranks[0].notes())
    assert ranks[0].events("optimizer_step", model="Fused") == []
    assert "reduced" not in [stage for _, _, stage in ranks[0].stages("Fused")]


def test_sparse_is_read(ranks: tuple[Connection, Connection]) -> None:
    for stage in ("local", "reduced", "final"):
        [line] = ranks[0].tensors(stage, 1, 0, "Table").values()
        assert (line["state"], line["shape"]) == ("finite", [4, 3])


COMPILED = """
graphs = [0]
def backend(module, inputs):
    graphs[0] += 1
    return module.forward
def train(net, parameters, steps=5):
    optimizer = torch.optim.SGD(parameters, lr=.1)
    for step in range(steps):
        optimizer.zero_grad()
        loss = net(batch(step)).square().mean()
        loss.backward()
        optimizer.step()
        show(loss)
    print("graphs", graphs, flush=True)
ddp = DDP(named("Outside"))
train(torch.compile(ddp, backend=backend), ddp.parameters())
net = named("Bypass")
ddp = DDP(net)
train(torch.compile(net, backend=backend), ddp.parameters())
ddp = DDP(named("Whole"))
optimizer = torch.optim.Adam(ddp.parameters(), lr=.1)
@torch.compile(backend=backend)
def step(x):
    optimizer.zero_grad()
    loss = ddp(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
for number in range(5):
    show(step(batch(number)))
print("graphs", graphs, flush=True)
"""


@pytest.fixture(scope="module")
def compiled() -> Ran:
    ran = run(COMPILED)
    assert ran.codes == [0, 0], ran.err
    return ran


def test_compiles_what_it_would_without_the_agent(compiled: Ran) -> None:
    plain = run(COMPILED, with_agent=False)
    assert plain.losses == compiled.losses
    assert plain.out[0].count("graphs") == 3
    lines = [[x for x in ran.out[0].splitlines() if "graphs" in x] for ran in (plain, compiled)]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("model", ["Outside", "Bypass", "Whole"])
def test_compiled_model(compiled: Ran, model: str) -> None:
    rank = compiled.rank(0)
    is_wrapped = model != "Bypass"
    assert [e["armed"] for e in rank.events("backward", model=model)] == [is_wrapped] * 3
    assert len(rank.events("wrapper_forward", model=model)) == 3 * is_wrapped
    assert len(rank.events("inner_forward", model=model)) == 3 * (not is_wrapped)
    assert len(rank.events("optimizer_step", model=model)) == 3
    pair = (rank, compiled.rank(1))
    assert differing(pair, model, "reduced") == (0 if is_wrapped else 4, 4)
