# SPDX-License-Identifier: Apache-2.0
"""Parts of the agent alone: no job, no channel."""

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from agent_front import PACKAGE

sys.path.insert(0, str(PACKAGE.parent))

from gradcheck.agent import boot, callsite, channel, job, model, world

sys.path.pop(0)

JOB = {"schema": "job-1", "run": "r", "directory": "/d", "socket": "/s", "library": "/l"}


@pytest.mark.parametrize(
    ("text", "directory"),
    [
        (json.dumps(JOB), "/d"),
        (json.dumps(JOB, separators=(",", ":")), "/d"),
        (json.dumps({**JOB, "directory": 'a"b\\c'}), 'a"b\\c'),
        ("{}", ""),
        ('{"directory": 3}', ""),
        ('"directory"', ""),
        ("", ""),
    ],
)
def test_directory_is_read_without_json(text: str, directory: str) -> None:
    assert boot._directory_of(text) == directory


@pytest.mark.parametrize(
    "change", [{"schema": "job-2"}, {"socket": ""}, {"library": None, "run": 1, "every": "x"}]
)
def test_wrong_job(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        job.parse(json.dumps({**JOB, **change}))


def test_checked_steps() -> None:
    asked = job.parse(json.dumps({**JOB, "every": 10}))
    assert [step for step in range(31) if asked.is_checked(step)] == [0, 1, 2, 10, 20, 30]
    assert [asked.previous_checked(step) for step in (0, 1, 2, 10, 20)] == [0, 0, 1, 2, 10]
    never = job.parse(json.dumps({**JOB, "every": 0}))
    assert [step for step in range(31) if never.is_checked(step)] == [0, 1, 2]


def test_finder_leaves_loaders_as_they_are(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "hooked_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    placed = []
    monkeypatch.setitem(boot.HOOKS, "hooked_module", ("none", "none"))
    hooks = SimpleNamespace(place=lambda name, module: placed.append((name, module.value)))
    finder = boot.Finder(hooks)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    import hooked_module

    assert placed == [("hooked_module", 1)]
    assert "exec_module" not in vars(hooked_module.__spec__.loader)
    assert type(hooked_module.__loader__).__name__ == "SourceFileLoader"


def test_call_site_is_relative(monkeypatch: Any) -> None:
    site = callsite.CallSite()
    assert site._shortened("/x/lib/site-packages/trl/trainer.py") == "trl/trainer.py"
    assert site._shortened(f"{site._here}/a/b.py") == "a/b.py"
    assert site._shortened("/elsewhere/c.py") == "c.py"
    assert site.find().startswith("tests/probes/python/agent_unit_test.py:") or ":" in site.find()


def test_names_that_do_not_fit_into_a_line() -> None:
    names = [f"layer.{i}.weight" for i in range(10_000)]
    parts = channel._split(names)
    assert [name for part in parts for name in part] == names
    assert all(sum(len(name) + 3 for name in part) <= 24 * 1024 for part in parts)
    assert channel._split("all") == ["all"]
    assert channel._split(None) == [None]


def test_values_that_json_has_not() -> None:
    assert channel._printable(float("nan")) is None
    assert channel._printable("a\udc80b") == "a?b"
    assert len(channel._printable("x" * 10_000)) == 8192


def test_names_without_what_compilation_adds() -> None:
    assert model.clean("_orig_mod.layers.0._orig_mod.weight") == "layers.0.weight"


def test_group_names() -> None:
    assert world.group_name([0, 1], 2) == "world"
    assert world.group_name([0, 2], 4) == "ranks 0,2"
    assert len(world.group_name(list(range(100)), 200)) == 22


class Recording:
    """Stands for the agent where hooks are placed on a torch that lacks something."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        calls = self.calls = []
        self.steps = SimpleNamespace(
            forward_begins=lambda wrapper: calls.append("begins"),
            forward_entered=lambda wrapper, inputs: calls.append(("entered", inputs)),
            backward_begins=lambda outputs: calls.append("backward begins"),
            backward_ends=lambda: calls.append("backward ends"),
            backwards_overlap=lambda: calls.append("overlap"),
            in_backward=0,
            in_grad=0,
        )

    def shield(self, work: Any) -> Any:
        return work

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_wrapper_without_pre_forward() -> None:
    pytest.importorskip("torch")
    from gradcheck.agent import ddp

    class Wrapper:
        def forward(self, x: int) -> int:
            return x + 1

    agent = Recording()
    ddp._hook_forward(agent, Wrapper)
    assert Wrapper().forward(1) == 2
    assert agent.calls == ["begins", ("entered", ((1,), {}))]
    ddp.hook_ddp(agent, SimpleNamespace(DistributedDataParallel=type("W", (Wrapper,), {})))
    assert [text.partition(";")[0] for text in agent.notes] == [
        "hook missing: DistributedDataParallel._pre_forward",
        "hook missing: DistributedDataParallel.register_comm_hook",
        "hook missing: DistributedDataParallel._register_builtin_comm_hook",
    ]


def test_autograd_without_one_engine_call() -> None:
    pytest.importorskip("torch")
    from gradcheck.agent import backward

    agent = Recording()
    module = SimpleNamespace(backward=lambda x: x, grad=lambda x: -x, graph=SimpleNamespace())
    backward.hook_graph(agent, SimpleNamespace())
    backward.hook_autograd(agent, module)
    assert (module.backward(3), module.grad(3)) == (3, -3)
    assert agent.calls == ["backward begins", "backward ends"]
    assert agent.notes[0].startswith("hook missing: torch.autograd._engine_run_backward")


def test_a_backward_that_raises_is_over() -> None:
    pytest.importorskip("torch")
    from gradcheck.agent import backward

    agent = Recording()
    brackets = backward.Brackets(agent)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            brackets.backward(lambda: 1 / 0)
    assert agent.calls == ["backward begins", "backward ends"] * 2
    assert agent.steps.in_backward == 0


def test_storage_that_is_gone_is_not_read() -> None:
    torch = pytest.importorskip("torch")
    from gradcheck.agent.library import View
    from gradcheck.agent.tensors import Reader

    reader = Reader()
    tensor = torch.ones(4)
    view = reader.fill(View(), tensor[1:])
    assert (view.data, view.unreadable) == (tensor.data_ptr() + 4, 0)
    tensor.untyped_storage().resize_(0)
    assert reader.fill(view, tensor).unreadable == 1
    assert reader.fill(view, None).data is None
    negative = torch.zeros(2, dtype=torch.complex64).conj().imag
    assert reader.fill(view, negative).unreadable == 1
    strided = torch.ones(4, 4).t()
    assert reader.fill(view, strided).unreadable == 0
    assert (view.ndim, view.dtype) == (2, 1)
    assert reader.fill(view, torch.ones(2, device="meta")).unreadable == 1


def test_sparse_tensors_are_read_as_dense_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from gradcheck.agent import tensors
    from gradcheck.agent.library import View

    reader = tensors.Reader()
    twice = torch.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,))
    view = reader.fill(View(), twice)
    assert (view.unreadable, view.ndim, view.data) == (0, 1, view.dense.data_ptr())
    assert view.dense.tolist() == [0, 5, 0]
    reader.fill(view, torch.ones(3))
    assert view.dense is None
    monkeypatch.setattr(tensors, "_MAX_DENSE", 8)
    assert reader.fill(view, twice).unreadable == 1
