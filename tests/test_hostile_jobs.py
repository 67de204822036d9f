# SPDX-License-Identifier: Apache-2.0
"""Jobs that once passed although ranks trained on gradients of their own, each by what hid it."""

import sys
from pathlib import Path

import pytest
from conftest import Gradcheck

HEAD = """
import os, sys
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def batch(rank, step):
    return torch.randn(4, 6, generator=torch.Generator().manual_seed(10 * step + rank))

def net():
    torch.manual_seed(0)
    return nn.Linear(6, 2)
"""

# Two processes that never meet, though two ranks were started.
APART = """
for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT"):
    rank = int(os.environ.get("RANK", "0")) if name == "RANK" else rank
    os.environ.pop(name, None)
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
for step in range(3):
    optimizer.zero_grad()
    model(batch(rank, step)).square().mean().backward()
    optimizer.step()
"""

# A healthy step; then the optimizer steps inside the backward, where nobody can follow.
FUSED_LATER = """
dist.init_process_group("gloo")
rank = dist.get_rank()
wrapper = DDP(net())
optimizer = torch.optim.SGD(wrapper.parameters(), lr=.1)
wrapper(batch(rank, 0)).square().mean().backward()
optimizer.step()
optimizer.zero_grad()
last = list(wrapper.parameters())[0]

def fused(parameter):
    optimizer.step()
    optimizer.zero_grad()

last.register_post_accumulate_grad_hook(fused)
for step in (1, 2):
    wrapper.module(batch(rank, step)).square().mean().backward()
dist.destroy_process_group()
"""

# A healthy step; then weights are updated by hand from gradients of a bypass.
UNSEEN_LATER = """
dist.init_process_group("gloo")
rank = dist.get_rank()
wrapper = DDP(net())
optimizer = torch.optim.SGD(wrapper.parameters(), lr=.1)
wrapper(batch(rank, 0)).square().mean().backward()
optimizer.step()
for step in (1, 2, 3):
    for parameter in wrapper.parameters():
        parameter.grad = None
    wrapper.module(batch(rank, step)).square().mean().backward()
    with torch.no_grad():
        for parameter in wrapper.parameters():
            parameter -= .1 * parameter.grad
dist.destroy_process_group()
"""

# A reduction by hand that drops rank 1's share: ranks agree, on something that is neither.
LOST_BY_HAND = """
dist.init_process_group("gloo")
rank = dist.get_rank()
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
for step in range(3):
    optimizer.zero_grad()
    model(batch(rank, step)).square().mean().backward()
    for parameter in model.parameters():
        if rank == 1:
            parameter.grad.zero_()
        dist.all_reduce(parameter.grad)
        parameter.grad /= 2
    optimizer.step()
dist.destroy_process_group()
"""

# Ranks that begin to train before they know each other.
WARM_UP_ALONE = """
import torch.multiprocessing as mp

def work(rank, port):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    for step in range(3):
        optimizer.zero_grad()
        model(batch(rank, step)).square().mean().backward()
        optimizer.step()
        if step == 0:
            dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    dist.destroy_process_group()

if __name__ == "__main__":
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(work, (port,), nprocs=2)
"""

# A launcher that trains a little and then forks the ranks.
FORKED_LATER = """
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
model(batch(0, 0)).square().mean().backward()
optimizer.step()
for rank in range(2):
    if os.fork() == 0:
        other = net()
        mine = torch.optim.SGD(other.parameters(), lr=.1)
        other(batch(rank, 1)).square().mean().backward()
        mine.step()
        os._exit(0)
for rank in range(2):
    os.wait()
"""

# A module beside a healthy one that nobody wrapped, updated by hand: no optimizer ever sees it.
BY_HAND = """
dist.init_process_group("gloo")
rank = dist.get_rank()
wrapper, head = DDP(net()), nn.Linear(2, 2)
optimizer = torch.optim.SGD(wrapper.parameters(), lr=.1)
for step in range(3):
    optimizer.zero_grad()
    head.zero_grad()
    head(wrapper(batch(rank, step))).square().mean().backward()
    optimizer.step()
    for parameter in head.parameters():
        parameter.data -= .1 * parameter.grad
dist.destroy_process_group()
"""

# A context for uneven inputs of one model; another one, reduced by hand, loses a rank in one step.
JOINED_ELSEWHERE = """
from torch.distributed.algorithms.join import Join
dist.init_process_group("gloo")
rank = dist.get_rank()
wrapper, model = DDP(nn.Linear(6, 3)), net()
outer = torch.optim.SGD(wrapper.parameters(), lr=.1)
inner = torch.optim.SGD(model.parameters(), lr=.1)
with Join([wrapper]):
    for step in range(2 + rank):
        outer.zero_grad()
        wrapper(batch(rank, 50 + step)).square().mean().backward()
        outer.step()
for step in range(3):
    if step == 2 and rank == 0:
        continue
    inner.zero_grad()
    model(batch(rank, step)).square().mean().backward()
    for parameter in model.parameters() if step < 2 else []:
        dist.all_reduce(parameter.grad)
        parameter.grad /= 2
    inner.step()
dist.destroy_process_group()
"""

# Two optimizers take the same gradient, and in the last step rank 1 doubles it between them.
BETWEEN_OPTIMIZERS = """
dist.init_process_group("gloo")
rank = dist.get_rank()
wrapper = DDP(net())
first = torch.optim.SGD(wrapper.parameters(), lr=.1)
second = torch.optim.SGD([wrapper.module.bias], lr=.1)
for step in range(3):
    wrapper.zero_grad()
    wrapper(batch(rank, step)).square().mean().backward()
    first.step()
    if rank == 1 and step == 2:
        wrapper.module.bias.grad *= 2
    second.step()
dist.destroy_process_group()
"""

# Rank 1 makes its gradients at other weights and puts the old ones back before the step.
OTHER_WEIGHTS = """
dist.init_process_group("gloo")
rank = dist.get_rank()
wrapper = DDP(net())
optimizer = torch.optim.SGD(wrapper.parameters(), lr=.1)
for step in range(3):
    optimizer.zero_grad()
    kept = [parameter.detach().clone() for parameter in wrapper.parameters()]
    for parameter in wrapper.parameters() if rank == 1 and step > 0 else []:
        parameter.data += 1
    wrapper(batch(rank, step)).square().mean().backward()
    for parameter, old in zip(wrapper.parameters(), kept):
        parameter.data.copy_(old)
    optimizer.step()
dist.destroy_process_group()
"""

# A hook of one rank alone weights its share of the mean.
REWRITTEN_ON_ONE = """
def double(parameter):
    parameter.grad.mul_(2)

dist.init_process_group("gloo")
rank = dist.get_rank()
wrapper = DDP(net())
optimizer = torch.optim.SGD(wrapper.parameters(), lr=.1)
for parameter in wrapper.parameters() if rank == 1 else []:
    parameter.register_post_accumulate_grad_hook(double)
for step in range(3):
    optimizer.zero_grad()
    wrapper(batch(rank, step)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""

# Pairs of ranks that never meet, though all four start from the same weights.
PAIRS = """
dist.init_process_group("gloo")
rank = dist.get_rank()
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
wrapper = DDP(net(), process_group=pairs[rank // 2])
optimizer = torch.optim.SGD(wrapper.parameters(), lr=.1)
for step in range(2):
    optimizer.zero_grad()
    wrapper(batch(rank, step)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""

CASES = {
    "two processes that never meet": (APART, 2, "do not train together"),
    "an optimizer inside the backward, later": (FUSED_LATER, 2, "stepped inside a backward"),
    "updates by hand, later": (UNSEEN_LATER, 2, "after the last optimizer step"),
    "a hand-made reduction that loses a rank": (LOST_BY_HAND, 2, "neither the mean nor the sum"),
    "a group that comes too late": (WARM_UP_ALONE, 0, "came after recording had begun"),
    "a module that is updated by hand": (BY_HAND, 2, "no wrapper that was seen holds them"),
    "a join of another model": (JOINED_ELSEWHERE, 2, "GC804"),
    "an edit between two optimizers": (BETWEEN_OPTIMIZERS, 2, "changed between two optimizers"),
    "gradients made at other weights": (OTHER_WEIGHTS, 2, "made at other weights"),
    "a hook that weights one rank": (REWRITTEN_ON_ONE, 2, "rewritten by the program's own"),
    "replicas in two groups": (PAIRS, 4, "reduced apart over"),
    "ranks forked from one that trained": (FORKED_LATER, 0, "forked from a rank"),
}


@pytest.mark.parametrize("what", CASES)
def test_it_does_not_pass(gradcheck: Gradcheck, tmp_path: Path, what: str) -> None:
    text, ranks, sentence = CASES[what]
    script = tmp_path / "train.py"
    script.write_text(HEAD + text)
    options = ["-n", str(ranks)] if ranks else []
    result = gradcheck("exec", *options, "-v", "--", sys.executable, script)
    assert result.code == 3, result.out
    assert sentence in " ".join(result.out.split())


# Healthy to the end, which its own check then refuses.
REFUSED = """
dist.init_process_group("gloo")
rank = dist.get_rank()
wrapper = DDP(net())
optimizer = torch.optim.SGD(wrapper.parameters(), lr=.1)
for step in range(2):
    optimizer.zero_grad()
    wrapper(batch(rank, step)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
LEAVE
"""


@pytest.mark.parametrize(
    ("leave", "code"), [("sys.exit(0)", 0), ("sys.exit(3)", 3), ("raise SystemExit(3)", 3)]
)
def test_a_status_given_to_a_launcher_counts(
    gradcheck: Gradcheck, tmp_path: Path, leave: str, code: int
) -> None:
    """torchrun exits with 1, as it does where a rank aborts in its destructors."""
    script = tmp_path / "train.py"
    script.write_text(HEAD + REFUSED.replace("LEAVE", leave))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    result = gradcheck("exec", "--format", "json", "--", *launcher, script)
    assert result.json()["scenarios"][0]["arms"][0]["outcome"] == "consistent"
    assert result.code == code
