# SPDX-License-Identifier: Apache-2.0
"""What is recorded of gradients that are odd: rewritten, sparse, shared, or in nobody's hands."""

import pytest
from agent_front import Connection, Ran, run

JOB = """
from torch.distributed.algorithms.join import Join

def step(ddp, optimizer, number, micros=1):
    optimizer.zero_grad()
    for micro in range(micros):
        loss = ddp(batch(number, micro)).square().mean()
        loss.backward()
    optimizer.step()
    show(loss)

def clamp(p):
    p.grad.clamp_(-.001, .001)

def reduce(p):
    dist.all_reduce(p.grad)

# Rewritten before the wrapper reduces them, over two micro-steps.
net = named("Clamped")
net.a.weight.register_post_accumulate_grad_hook(clamp)
ddp = DDP(net)
optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
step(ddp, optimizer, 0)
step(ddp, optimizer, 1, micros=2)

# Looked at, not rewritten.
net = named("Watched")
net.a.weight.register_post_accumulate_grad_hook(lambda p: None)
ddp = DDP(net)
step(ddp, torch.optim.SGD(ddp.parameters(), lr=.1), 0)

# Reduced by such a hook: `local` is what came before.
net = named("Unwrapped")
for p in net.parameters():
    p.register_post_accumulate_grad_hook(reduce)
step(net, torch.optim.SGD(net.parameters(), lr=.1), 0)

class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingBag(9, 3, sparse=True, mode="sum")
    def forward(self, x):
        return self.table((x.abs() * 4).long().clamp(max=8))
ddp = DDP(named("Table", Sparse))
step(ddp, torch.optim.SGD(ddp.parameters(), lr=.1), 0)

# A context of one model.
joined, other = DDP(named("Joined")), DDP(named("Other"))
first = torch.optim.SGD(joined.parameters(), lr=.1)
second = torch.optim.SGD(other.parameters(), lr=.1)
with Join([joined]):
    step(joined, first, 0)
step(other, second, 0)

# Inputs come and go, parameters stay: one by hand, one that nothing changes.
ddp = DDP(named("Healthy"))
optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
fixed = nn.Parameter(torch.ones(2))
for number in range(2):
    optimizer.zero_grad()
    x = batch(number).requires_grad_()
    (ddp(x) * fixed).square().mean().backward()
    optimizer.step()
# <by hand>
"""

BY_HAND = """
scale = nn.Parameter(torch.ones(2))
for number in range(2):
    optimizer.zero_grad()
    (ddp(batch(number)) * scale).square().mean().backward()
    optimizer.step()
    scale.data -= .1 * scale.grad
"""


@pytest.fixture(scope="module")
def job() -> Ran:
    return run(JOB.replace("# <by hand>", BY_HAND))


@pytest.fixture(scope="module")
def rank(job: Ran) -> Connection:
    assert job.codes == [0, 0], job.err
    assert job.rank(0).open_stages() == []
    return job.rank(0)


def notes(rank: Connection, part: str) -> list[str]:
    return [note for note in rank.notes() if part in note]


def test_the_agent_leaves_losses_alone(job: Ran) -> None:
    assert run(JOB.replace("# <by hand>", BY_HAND), with_agent=False).losses == job.losses


def test_local_is_what_the_programs_hook_leaves(rank: Connection) -> None:
    for step, micro in ((0, 0), (1, 0), (1, 1)):
        local = rank.tensors("local", step, micro, "Clamped")
        assert 0 < local["a.weight"]["max_abs"] <= 0.002001
        assert local["b.weight"]["max_abs"] > 0.0021
    assert len(notes(rank, "gradients of Clamped are rewritten by")) == 1


def test_hooks_that_rewrite_nothing_are_not_told(rank: Connection) -> None:
    assert notes(rank, "gradients of Watched") == []
    assert "a.weight" in rank.tensors("local", 0, 0, "Watched")


def test_without_a_wrapper_local_comes_before_the_programs_hook(job: Ran) -> None:
    local, reduced = (
        [job.rank(r).digests(stage, 0, 0, "Unwrapped") for r in (0, 1)]
        for stage in ("local", "reduced")
    )
    assert all(local[0][name] != local[1][name] for name in local[0])
    assert reduced[0] == reduced[1]


def test_sparse_gradients_are_measured_as_dense(job: Ran) -> None:
    for stage in ("local", "reduced"):
        record = job.rank(0).tensors(stage, 0, 0, "Table")["table.weight"]
        assert record["shape"] == [9, 3]
        assert record["state"] == "finite"
        assert record["n"] == 27
    reduced = [job.rank(r).digests("reduced", 0, 0, "Table") for r in (0, 1)]
    assert reduced[0] == reduced[1]


def test_a_join_names_its_model(rank: Connection) -> None:
    assert [line.get("model") for line in rank.events("note", text="join")] == ["Joined"]


def test_a_parameter_that_is_trained_by_hand_is_told(rank: Connection) -> None:
    (note,) = notes(rank, "no wrapper that was seen holds them")
    assert note.startswith("not checked: 1 tensors change")


def test_weights_are_recorded_where_the_next_gradients_are_made(rank: Connection) -> None:
    start = rank.digests("start", 1, 0, "Clamped")
    assert start == rank.digests("after", 0, 0, "Clamped")
    assert len(start) == 4
