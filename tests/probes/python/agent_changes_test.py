# SPDX-License-Identifier: Apache-2.0
"""What a program changes after wrapping: thawing, hooks, options, and a step that raised."""

import pytest
from agent_front import Connection, Ran, run

# One job, one model a case: each model has its own steps.

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
