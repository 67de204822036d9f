# SPDX-License-Identifier: Apache-2.0
"""Programs that do unusual things to tensors, modes and threads: none may notice the agent."""

import pytest
from agent_front import Connection, Ran, run

ODD = """
def train(net, steps=2):
    optimizer = torch.optim.SGD(net.parameters(), lr=.1)
    for step in range(steps):
        optimizer.zero_grad()
        loss = net(batch(step)).square().mean()
        loss.backward()
        optimizer.step()
        show(loss)
        yield step

# swap_tensors refuses tensors with weak references, and leaves hooks behind.
torch.__future__.set_swap_module_params_on_conversion(True)
net = named("Swapped")
for step in train(net):
    net.to(torch.float64)
    net.to(torch.float32)
torch.__future__.set_swap_module_params_on_conversion(False)

# Modes count every operator and every function of torch that runs under them.
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
class Operators(TorchDispatchMode):
    count = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Operators.count += 1
        return func(*args, **(kwargs or {}))
class Functions(TorchFunctionMode):
    count = 0
    def __torch_function__(self, func, types, args=(), kwargs=None):
        Functions.count += 1
        return func(*args, **(kwargs or {}))
with Operators(), Functions():
    list(train(named("Modes")))
print("loss operators", Operators.count, "functions", Functions.count)

class Special(nn.Parameter):
    count = 0
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Special.count += 1
        return super().__torch_function__(func, types, args, kwargs or {})
net = named("Subclass")
net.a.weight = Special(net.a.weight.data.clone())
list(train(net))
print("loss special", Special.count)

# Gradients from elsewhere.
from torch.func import functional_call, grad
net = named("Func")
optimizer = torch.optim.SGD(net.parameters(), lr=.1)
for step in range(2):
    loss = lambda p: functional_call(net, p, batch(step)).square().mean()
    gradients = grad(loss)({k: v.detach() for k, v in net.named_parameters()})
    for k, p in net.named_parameters():
        p.grad = gradients[k]
    optimizer.step()
    show(sum(g.sum() for g in gradients.values()))

class Kinds(nn.Module):
    def __init__(self):
        super().__init__()
        self.complex = nn.Parameter(torch.randn(3, dtype=torch.complex64))
        self.wide = nn.Parameter(torch.randn(4, dtype=torch.float64))
        self.conv = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
        self.nothing = nn.Parameter(torch.zeros(0))
        self.scalar = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("integer", torch.arange(3))
        self.register_buffer("none", None)
        self.register_buffer("eight", torch.zeros(2).to(torch.float8_e4m3fn))
        self.register_buffer("unknown", torch.zeros(2, dtype=torch.uint16))
        self.register_buffer("meta", torch.zeros(2, device="meta"))
    def forward(self, x):
        y = (self.complex.abs().sum() + self.wide.sum()) * self.scalar
        z = x.reshape(1, 3, 2, 2).repeat(2, 1, 2, 2).contiguous(memory_format=torch.channels_last)
        return (y + self.conv(z).sum() + self.nothing.sum()).float()
list(train(Kinds()))

with torch.autograd.detect_anomaly():
    list(train(named("Anomaly")))

# The model was dropped; its memory must go with it.
import gc, weakref
net = named("Dropped")
list(train(net, steps=4))
gone = weakref.ref(net.a)
del net
gc.collect()
print("loss gone", gone() is None)

# Backwards of two threads at once cannot be told apart.
import threading
barrier = threading.Barrier(2)
class Meet(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        barrier.wait()
        return g
def work(net):
    loss = Meet.apply(net(batch(0))).square().mean()
    loss.backward()
nets = [named("Thread"), named("Thread")]
optimizers = [torch.optim.SGD(net.parameters(), lr=.1) for net in nets]
threads = [threading.Thread(target=work, args=(net,)) for net in nets]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for optimizer in optimizers:
    optimizer.step()
show(nets[0](batch(1)).sum())
list(train(named("Later")))
"""


@pytest.fixture(scope="module")
def odd() -> Ran:
    ran = run(ODD, ranks=0, farewell="")
    assert ran.codes == [0], ran.err
    return ran


@pytest.fixture(scope="module")
def rank(odd: Ran) -> Connection:
    assert odd.rank(0).open_stages() == []
    return odd.rank(0)


def test_output_is_the_same_without_the_agent(odd: Ran) -> None:
    """Losses, and how often modes and subclasses of the program were asked."""
    assert run(ODD, ranks=0, farewell="", with_agent=False).losses == odd.losses
    assert "loss gone True" in odd.losses


@pytest.mark.parametrize("model", ["Swapped", "Modes", "Subclass", "Kinds", "Anomaly", "Later"])
def test_everything_is_recorded(rank: Connection, model: str) -> None:
    step = ["start", "local", "reduced", "final", "after"]
    assert [stage for _, _, stage in rank.stages(model)] == step * 2
    states = {line["state"] for line in rank.tensors("local", 1, 0, model).values()}
    assert states <= {"finite", "zero"}


def test_gradients_from_elsewhere(rank: Connection) -> None:
    stages = [stage for _, _, stage in rank.stages("Func")]
    assert stages == ["start", "final", "after", "final", "after"]
    assert rank.events("backward", model="Func") == []


def test_kinds_of_tensors(rank: Connection) -> None:
    after = rank.tensors("after", 1, 0, "Kinds")
    kinds = {name: (line["dtype"], line["state"]) for name, line in after.items()}
    assert kinds["complex"] == ("c64", "finite")
    assert kinds["integer"] == ("i64", "finite")
    assert kinds["eight"] == ("f8_e4m3fn", "finite")
    assert kinds["unknown"] == ("other", "unreadable")
    assert kinds["meta"] == ("f32", "unreadable")
    assert "none" not in kinds


def test_threads_at_once_are_given_up(rank: Connection) -> None:
    told = [text for text in rank.notes() if "several threads" in text]
    assert {text.split(": ")[1] for text in told} >= {"Thread", "Thread 2"}
    assert rank.events("optimizer_step", model="Thread") == []
