# SPDX-License-Identifier: Apache-2.0
"""Calls of log_softmax, cross_entropy and logsumexp over a vocabulary are told once each."""

from pathlib import Path
from typing import Any

from agent_front import Connection, Record, run

CALLS = """
import torch.nn.functional as F
VOCABULARY = 1024
def logits(*shape, dtype=torch.float32):
    torch.manual_seed(3)
    return torch.randn(*shape, dtype=dtype)
def train(steps=1, between=lambda step: None):
    ddp = DDP(Net()) if size > 1 else Net()
    optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
    for step in range(steps):
        optimizer.zero_grad()
        loss = ddp(batch(step)).square().mean()
        between(step)
        loss.backward()
        optimizer.step()
    show(loss)
"""


def told(connection: Connection) -> list[Record]:
    return connection.events("log_softmax")


def one(script: str, **options: Any) -> list[Record]:
    ran = run(CALLS + script, ranks=0, **options)
    assert ran.codes == [0], ran.err
    assert ran.rank(0).notes() == []
    return told(ran.rank(0))


def brief(event: Record) -> tuple[Any, ...]:
    keys = ("op", "dtype", "result_dtype", "grad_mode", "autocast", "classes")
    return tuple(event.get(key) for key in keys)


def test_dtype_grad_mode_autocast_and_site_are_told_by_every_rank() -> None:
    script = """
def calls(step):
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        F.log_softmax(logits(2, 1024, dtype=torch.bfloat16), dim=-1)
    F.log_softmax(logits(2, 1024), -1)
    F.log_softmax(logits(2, 1024, dtype=torch.bfloat16), -1, dtype=torch.float32)
train(2, calls)
"""
    ran = run(CALLS + script)
    assert ran.codes == [0, 0], ran.err
    for rank in (0, 1):
        events = told(ran.rank(rank))
        assert [brief(event) for event in events] == [
            ("log_softmax", "bf16", "bf16", False, True, 1024),
            ("log_softmax", "f32", "f32", True, False, 1024),
            ("log_softmax", "bf16", "f32", True, False, 1024),
        ]
        assert len({event["site"] for event in events}) == 3
        assert all(event["site"].startswith("train.py:") for event in events)
        assert {(event["step"], event["micro"]) for event in events} == {(0, 0)}


def test_the_outermost_call_counts_under_every_name() -> None:
    script = """
x, y = logits(3, VOCABULARY), torch.tensor([1, 2, 3])
for call in (
    lambda: F.log_softmax(x, dim=1),
    lambda: F.cross_entropy(x, y),
    lambda: nn.CrossEntropyLoss()(x, y),
    lambda: F.cross_entropy(input=x.T.reshape(1, VOCABULARY, 3), target=y[None]),
    lambda: torch.log_softmax(x, 1),
    lambda: torch.log_softmax(x, dim=-1),
    lambda: torch.logsumexp(x, -1),
    lambda: torch.logsumexp(input=x, dim=(1,)),
    lambda: x.log_softmax(-1),
    lambda: x.logsumexp(dim=-1),
    lambda: torch.special.log_softmax(x, 1),
    lambda: torch.special.logsumexp(x, 1),
):
    call()
train()
"""
    events = one(script)
    assert [event["op"] for event in events] == [
        "log_softmax",
        "cross_entropy",
        "cross_entropy",
        "cross_entropy",
        "log_softmax",
        "log_softmax",
        "logsumexp",
        "logsumexp",
        "log_softmax",
        "logsumexp",
        "log_softmax",
        "logsumexp",
    ]
    assert {event["classes"] for event in events} == {1024}
    assert len({event["site"] for event in events}) == 12


def test_fewer_classes_than_a_thousand_are_no_vocabulary() -> None:
    script = """
F.log_softmax(logits(4, 999), -1)
F.log_softmax(logits(2000, 4), -1)
F.cross_entropy(logits(2000, 4), torch.zeros(2000, dtype=torch.long))
torch.logsumexp(logits(40, 50), (0, 1))
F.log_softmax(logits(1000, 4), 0)
train()
"""
    assert [event["classes"] for event in one(script)] == [1000]


def test_each_distinct_call_is_told_once_and_sixteen_are_enough() -> None:
    script = """
x = logits(1, VOCABULARY)
for _ in range(5):
    F.log_softmax(x, -1)
code = "\\n".join("F.log_softmax(x, -1)" for _ in range(40))
exec(compile(code, "many.py", "exec"))
train()
"""
    events = one(script)
    assert len(events) == 16
    assert [event["site"] for event in events[1:3]] == ["many.py:1", "many.py:2"]


def test_steps_that_are_not_checked_tell_nothing() -> None:
    script = """
def calls(step):
    exec(compile("F.log_softmax(logits(1, 1024), -1)", f"step{step}.py", "exec"))
train(6, calls)
"""
    assert [event["site"] for event in one(script)] == [
        "step0.py:1",
        "step1.py:1",
        "step2.py:1",
    ]


def test_numbers_are_the_same_without_the_agent() -> None:
    script = """
x, y = logits(3, VOCABULARY).requires_grad_(), torch.tensor([1, 2, 3])
def calls(step):
    for loss in (F.cross_entropy(x, y, label_smoothing=.1), -F.log_softmax(x, -1)[0, 1],
                 x.logsumexp(-1).sum(), torch.log_softmax(x.bfloat16(), 1)[1, 2]):
        loss.backward()
        show(loss)
    show(x.grad.square().sum())
train(2, calls)
"""
    watched = run(CALLS + script, ranks=0)
    assert len(told(watched.rank(0))) == 4
    assert len(watched.losses) == 11
    assert watched.losses == run(CALLS + script, ranks=0, with_agent=False).losses


SCRIPTED = """
class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.CrossEntropyLoss(), nn.LogSoftmax(dim=1)
        self.loss, self.soft = self.inner
    def forward(self, x, y):
        a = F.log_softmax(x, dim=-1) + self.soft(x)
        b = torch.log_softmax(x, -1) + x.log_softmax(-1)
        c = torch.logsumexp(x, -1) + x.logsumexp(-1)
        d = F.cross_entropy(x, y, label_smoothing=.1) + self.loss(x, y)
        return a.sum() + b.sum() + c.sum() + d
class Special(nn.Module):
    def forward(self, x):
        return F.log_softmax(x, dim=-1) + torch.special.log_softmax(x, -1)
"""


def test_scripted_and_traced_modules_still_compile() -> None:
    script = """
x, y = logits(3, VOCABULARY), torch.tensor([1, 2, 3])
module = Scripted()
for _ in range(3):
    show(torch.jit.script(module)(x, y))
show(torch.jit.script(nn.CrossEntropyLoss())(x, y))
show(torch.jit.script(F.cross_entropy)(x, y))
show(torch.jit.trace(module, (x, y))(x, y))
show(torch.fx.symbolic_trace(module)(x, y))
print("loss graph", torch.fx.symbolic_trace(module).code.count("log_softmax("))
try:
    show(torch.jit.script(Special())(x).sum())
except Exception as error:
    print("loss", type(error).__name__)
train()
"""
    watched = run(CALLS + SCRIPTED + script, ranks=0)
    assert watched.codes == [0], watched.err
    assert watched.rank(0).notes() == []
    assert watched.losses == run(CALLS + SCRIPTED + script, ranks=0, with_agent=False).losses


def test_the_hooked_names_can_be_pickled_and_compiled() -> None:
    script = """
import pickle
for function in (F.cross_entropy, F.log_softmax, torch.log_softmax, torch.logsumexp,
                 torch.Tensor.log_softmax, torch.special.logsumexp):
    assert pickle.loads(pickle.dumps(function)) is function, function
def made(x, y):
    return (F.log_softmax(x, -1).sum() + torch.log_softmax(x, -1).sum() + x.log_softmax(-1).sum()
            + torch.logsumexp(x, -1).sum() + x.logsumexp(-1).sum() + F.cross_entropy(x, y))
x, y = logits(3, VOCABULARY).requires_grad_(), torch.tensor([1, 2, 3])
for backend in ("eager", "aot_eager"):
    torch._dynamo.reset()
    loss = torch.compile(made, backend=backend, fullgraph=True, dynamic=True)(x, y)
    loss.backward()
    show(loss)
show(x.grad.sum())
train()
"""
    watched = run(CALLS + script, ranks=0)
    assert watched.codes == [0], watched.err
    assert watched.rank(0).notes() == []
    assert watched.losses == run(CALLS + script, ranks=0, with_agent=False).losses


def test_functions_of_tensor_subclasses_and_modes_get_the_names_they_know() -> None:
    script = """
from torch.overrides import TorchFunctionMode
KNOWN = (torch.log_softmax, torch.logsumexp, torch.special.log_softmax, F.log_softmax,
         F.cross_entropy, torch.Tensor.log_softmax)
seen = []
class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(func in KNOWN)
        return super().__torch_function__(func, types, args, kwargs or {})
class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(func in KNOWN)
        return func(*args, **(kwargs or {}))
def calls(x):
    return [F.log_softmax(x, -1), torch.log_softmax(x, -1), torch.special.log_softmax(x, -1),
            torch.logsumexp(input=x, dim=-1), x.log_softmax(-1), F.cross_entropy(x, y)]
x, y = logits(3, VOCABULARY), torch.tensor([1, 2, 3])
plain = calls(x)
own = calls(x.as_subclass(Own))
print("loss own", len(seen), all(seen), [type(value).__name__ for value in own])
seen.clear()
with Mode():
    calls(x)
print("loss mode", len(seen), all(seen))
assert all(torch.equal(a, b) for a, b in zip(plain, own))
train()
"""
    watched = run(CALLS + script, ranks=0)
    assert watched.codes == [0], watched.err
    assert watched.rank(0).notes() == []
    assert watched.losses == run(CALLS + script, ranks=0, with_agent=False).losses


def test_a_forked_child_does_not_tell_what_its_parent_saw(tmp_path: Path) -> None:
    script = """
F.log_softmax(logits(1, VOCABULARY), -1)
child = os.fork()
if child == 0:
    F.log_softmax(logits(1, 2 * VOCABULARY), -1)
    train()
    sys.stdout.flush()
else:
    os.waitpid(child, 0)
    os._exit(0)
"""
    ran = run(CALLS + script, ranks=0)
    assert [event["classes"] for event in told(ran.rank(0))] == [2048]
