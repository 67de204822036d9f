# SPDX-License-Identifier: Apache-2.0
"""Healthy jobs that do odd things: judged in full, and what they do is told."""

import sys
from pathlib import Path

import pytest
from conftest import Gradcheck
from test_hostile_jobs import HEAD, PAIRS

# Every job: `model` and `optimizer` of this rank, a `step` and what is done in it.
LOOP = """
for step in range(3):
    optimizer.zero_grad()
    model(batch(rank, step)).square().mean().backward()
    {between}
    optimizer.step()
    {after}
dist.destroy_process_group()
"""
START = """
dist.init_process_group("gloo")
rank = dist.get_rank()
model = DDP(net())
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
"""


def loop(between: str = "pass", after: str = "pass") -> str:
    return LOOP.format(between=between, after=after)


# The stock hook, copied by hand.
FP16_HOOK = """
def compress(state, bucket):
    half = bucket.buffer().half().div_(2)
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda done: bucket.buffer().copy_(done.value()[0]))

model.register_comm_hook(None, compress)
"""

CLIP = """
def clip():
    norm = torch.sqrt(sum((p.grad ** 2).sum() for p in model.parameters()))
    for p in model.parameters():
        p.grad *= min(1., .01 / float(norm))
"""

CLAMP = """
def clamp(parameter):
    parameter.grad.clamp_(-.01, .01)

for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(clamp)
"""

SALIENCY = """
def saliency():
    x = batch(rank, step).requires_grad_()
    torch.autograd.grad(model.module(x).sum(), x)
"""

UNEVEN = """
for step in range(3):
    optimizer.zero_grad()
    with model.no_sync():
        for micro in range(1 + rank):
            model(batch(rank, 10 * step + micro)).square().mean().backward()
    model(batch(rank, 10 * step + 9)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""

LOG_ON_ONE = """
for step in range(3):
    if rank == 0:
        model.module(batch(rank, 100 + step)).square().mean().backward()
    optimizer.zero_grad()
    model(batch(rank, step)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""

PROBE = """
probe = nn.Linear(2, 1)
mine = torch.optim.SGD(probe.parameters(), lr=.1)

def fit():
    if rank == 0:
        mine.zero_grad()
        probe(model.module(batch(rank, step)).detach()).square().mean().backward()
        mine.step()
"""

SPARSE = """
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(nn.EmbeddingBag(10, 3, sparse=True, mode="sum"))
optimizer = torch.optim.SGD(model.parameters(), lr=.1)

def batch(rank, step):
    return torch.randint(10, (4, 5), generator=torch.Generator().manual_seed(10 * step + rank))
"""

HELPER = """
import subprocess
CODE = '''
import torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), .1)
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
'''

def helper():
    if rank == 0 and step == 1:
        subprocess.run([sys.executable, "-c", CODE], check=True)
"""

SAM = """
def ascend():
    with torch.no_grad():
        norm = torch.sqrt(sum((p.grad ** 2).sum() for p in model.parameters()))
        steps = [p.grad * .05 / norm for p in model.parameters()]
        for p, e in zip(model.parameters(), steps):
            p += e
    optimizer.zero_grad()
    model(batch(rank, step)).square().mean().backward()
    with torch.no_grad():
        for p, e in zip(model.parameters(), steps):
            p -= e
"""

# A loss network that is frozen by not being given to an optimizer, and an input with a gradient.
UNHELD = """
judge = nn.Linear(2, 2)

def loss():
    x = batch(rank, 50 + step).requires_grad_()
    judge(model.module(x)).sum().backward()
"""

CASES = {
    "a hook that averages in f16": (
        START + FP16_HOOK + loop(),
        2,
        "compress of Linear averages in f16",
    ),
    "clipping by hand": (START + CLIP + loop("clip()"), 2, "taken for clipping by hand"),
    "clamping in a hook": (START + CLAMP + loop(), 2, "rewritten by the program's own"),
    "a saliency map": (START + SALIENCY + loop(after="saliency()"), 2, ""),
    "ranks with uneven micro-steps": (START + UNEVEN, 2, "matched from the last one"),
    "a backward of one rank for its log": (START + LOG_ON_ONE, 2, "matched from the last one"),
    "a probe on one rank": (START + PROBE + loop(after="fit()"), 2, "trained on rank 0 alone"),
    "sparse gradients": (SPARSE + loop().replace("square().mean()", "sum()"), 2, ""),
    "a helper that inherits the rank": (
        START + HELPER + loop(after="helper()"),
        2,
        "started by a rank",
    ),
    "sharpness-aware minimisation": (
        START + SAM + loop("ascend()"),
        2,
        "between two backwards of one step",
    ),
    "networks that nobody trains": (START + UNHELD + loop(after="loss()"), 2, ""),
    "two experiments in one world": (PAIRS.replace("DDP(net()", "DDP(own(rank)"), 4, "by itself"),
}

OWN = """
def own(rank):
    torch.manual_seed(rank // 2)
    return nn.Linear(6, 2)
"""


@pytest.mark.parametrize("what", CASES)
def test_it_passes_and_says_what_was_odd(gradcheck: Gradcheck, tmp_path: Path, what: str) -> None:
    text, ranks, sentence = CASES[what]
    script = tmp_path / "train.py"
    script.write_text(HEAD + OWN + text)
    result = gradcheck(
        "exec", "-n", str(ranks), "-v", "--fail-on", "warning", "--", sys.executable, script
    )
    assert result.code == 0, result.out
    assert sentence in " ".join(result.out.split())


def test_a_step_that_forgets_its_gradients_is_told(gradcheck: Gradcheck, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(HEAD + START + loop("model.zero_grad(set_to_none=False)"))
    result = gradcheck("exec", "-n", "2", "--", sys.executable, script)
    assert result.code == 3, result.out
    assert "cleared between the backward and the optimizer step" in result.out
    assert "Call zero_grad before the backward" in result.out


def test_the_rank_that_edits_is_named(gradcheck: Gradcheck, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    edit = "model.module.weight.grad[0, 0] += float(rank)"
    script.write_text(HEAD + START + loop(edit))
    result = gradcheck("exec", "-n", "2", "-v", "--", sys.executable, script)
    assert result.code == 1, result.out
    assert "weight was changed on rank 1 alone" in result.out
    assert "Look at what rank 1 does to gradients" in result.out


@pytest.mark.parametrize("factor", ["0.5", "0.3", "2.0", "0.9 - 0.2 * rank"])
def test_factors_that_no_clipping_makes_are_errors(
    gradcheck: Gradcheck, tmp_path: Path, factor: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text(HEAD + START + loop(f"[p.grad.mul_({factor}) for p in model.parameters()]"))
    result = gradcheck("exec", "-n", "2", "--", sys.executable, script)
    assert result.code == 1, result.out
    assert "GC204" in result.out


def test_without_n_a_job_that_fails_leaves_its_last_words(gradcheck: Gradcheck) -> None:
    code = "print('on stdout'); raise ValueError('no data')"
    result = gradcheck("exec", "-v", "--", sys.executable, "-c", code)
    assert result.code == 3
    assert "before anything was recorded: ValueError: no data" in " ".join(result.out.split())
    assert "on stdout" in result.out
    assert "Traceback" in result.err
