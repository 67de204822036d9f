# SPDX-License-Identifier: Apache-2.0
"""In which processes the agent speaks, and how it ends."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from agent_front import PACKAGE, PREAMBLE, free_port, run

STEPS = """
ddp = DDP(Net())
optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
for step in range(2):
    optimizer.zero_grad()
    loss = ddp(batch(step)).square().mean()
    loss.backward()
    optimizer.step()
    show(loss)
"""
ALONE = """
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=.1)
for step in range(2):
    optimizer.zero_grad()
    loss = net(batch(step)).square().mean()
    loss.backward()
    optimizer.step()
    show(loss)
"""


@cache
def losses_alone() -> tuple[str, ...]:
    return tuple(run(ALONE, ranks=0, with_agent=False).losses)


def python(code: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "GRADCHECK"))}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=kept | {"PYTHONPATH": str(PACKAGE / "_site")} | env,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        check=False,
    )


def job(folder: Path) -> str:
    front = {"directory": str(folder), "socket": str(folder / "none"), "library": "none"}
    return json.dumps({"schema": "job-1", "run": "test", **front})


# --- processes that do not train


def test_without_a_job_nothing_is_there(tmp_path: Path) -> None:
    code = "import sys; print([m for m in sys.modules if 'gradcheck' in m], sys.meta_path[0])"
    done = python(code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[] ")


def test_broken_job_is_no_job(tmp_path: Path) -> None:
    for text in ("[]", json.dumps({"directory": str(tmp_path)})):
        done = python("import torch; print(torch.ones(1).item())", tmp_path, GRADCHECK_JOB=text)
        assert (done.returncode, done.stdout, done.stderr) == (0, "1.0\n", "")


def test_a_process_without_torch_loads_next_to_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; print(sorted(m for m in ('json', 'ctypes', 'typing', 're', 'torch', "
        "'_gradcheck_agent.core') if m in sys.modules))"
    )
    plain = python(code, tmp_path)
    done = python(code, tmp_path, GRADCHECK_JOB=job(tmp_path))
    assert done.stdout == plain.stdout
    assert [p.name.count("-") for p in tmp_path.glob("seen-*")] == [1]


def test_torch_alone_is_seen_and_silent(tmp_path: Path) -> None:
    done = python("import torch", tmp_path, GRADCHECK_JOB=job(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert [p.name.rpartition("-")[2] for p in tmp_path.glob("seen-*")] == ["torch"]


def test_another_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.essential = __file__\n")
    path = f"{PACKAGE / '_site'}{os.pathsep}{tmp_path}"
    code = "import sys; print(essential, sys.modules['sitecustomize'].__file__)"
    for env in ({"GRADCHECK_JOB": job(tmp_path)}, {}):
        done = python(code, tmp_path, PYTHONPATH=path, **env)
        here = str(tmp_path / "sitecustomize.py")
        assert done.stdout.split() == [here, here], done.stderr


def test_a_broken_sitecustomize_is_told_as_ever(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('theirs')\n")
    path = f"{PACKAGE / '_site'}{os.pathsep}{tmp_path}"
    done = python("print(1)", tmp_path, PYTHONPATH=path, GRADCHECK_JOB=job(tmp_path))
    alone = python("print(1)", tmp_path, PYTHONPATH=str(tmp_path))
    assert (done.stdout, done.stderr) == (alone.stdout, alone.stderr)


def test_the_package_can_be_imported_unless_there_is_another(tmp_path: Path) -> None:
    code = "import gradcheck; print(getattr(gradcheck, 'theirs', gradcheck.__all__))"
    done = python(code, tmp_path, GRADCHECK_JOB=job(tmp_path))
    assert done.stdout == "['log_probs']\n", done.stderr
    (tmp_path / "gradcheck.py").write_text("theirs = 'theirs'\n__all__ = []\n")
    done = python(code, tmp_path, GRADCHECK_JOB=job(tmp_path))
    assert done.stdout == "theirs\n"


# --- launchers


def test_torchrun() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2"]
    command += [f"--master_port={free_port()}", "--master_addr=127.0.0.1"]
    ran = run(STEPS, ranks=0, command=command)
    assert ran.codes == [0], ran.err
    for rank in (0, 1):
        assert ran.rank(rank).hello["world_size"] == 2
        assert ran.rank(rank).of("bye")[0]["status"] == 0
        assert ran.rank(rank).stages()[-1] == (1, 0, "after")
    assert ran.rank(0).hello["world"] == ran.rank(1).hello["world"]
    # The launcher imports torch too and says nothing more.
    assert sorted(ran.seen) == ["torch", "wrapped", "wrapped"]


SPAWN = """
import sys
import torch.multiprocessing as mp
def work(rank, port):
    import os
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    import torch, torch.distributed as dist
    dist.init_process_group("gloo", rank=rank, world_size=2)
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    ddp(torch.ones(1, 2) * rank).sum().backward()
    if sys.argv[-1] == "raise" and rank == 1:
        raise ValueError("mine")
    dist.barrier()
    dist.destroy_process_group()
if __name__ == "__main__":
    mp.start_processes(work, (PORT,), nprocs=2, start_method="METHOD")
"""


def spawned(method: str, *arguments: str) -> str:
    script = SPAWN.replace("METHOD", method).replace("PORT", str(free_port()))
    return script.replace("sys.argv[-1]", repr(arguments[0])) if arguments else script


def test_multiprocessing() -> None:
    for method in ("spawn", "fork"):
        ran = run(spawned(method), ranks=0, preamble="", farewell="")
        assert ran.codes == [0], ran.err
        assert sorted(c.hello["rank"] for c in ran.connections) == [0, 1]
        for connection in ran.connections:
            assert (0, 0, "reduced") in connection.stages()
            assert connection.of("bye")[0]["status"] == 0, method


def test_exception_in_a_spawned_rank() -> None:
    ran = run(spawned("spawn", "raise"), ranks=0, preamble="", farewell="")
    assert ran.codes == [1]
    assert "ValueError: mine" in ran.err[0]
    [exception] = ran.rank(1).events("exception")
    assert (exception["error_type"], exception["text"]) == ("ValueError", "mine")
    assert exception["phase"] == "backward"
    assert ran.rank(1).of("bye")[0]["status"] == 1


# --- ends


def test_uncaught_exception() -> None:
    script = ALONE + "raise RuntimeError('no\\udcff more')\n"
    ran = run(script, ranks=0, farewell="")
    assert ran.codes == [1]
    assert "RuntimeError" in ran.err[0]
    lines = ran.rank(0).lines
    [exception] = ran.rank(0).events("exception")
    assert (exception["error_type"], exception["text"]) == ("RuntimeError", "no? more")
    assert (lines[-1]["type"], lines[-1]["status"]) == ("bye", 1)


def test_exception_behind_a_replaced_excepthook() -> None:
    script = ALONE + "sys.excepthook = lambda *_: print('theirs')\nraise KeyError('k')\n"
    ran = run(script, ranks=0, farewell="")
    assert "theirs" in ran.out[0]
    assert ran.rank(0).events("exception")[0]["error_type"] == "KeyError"
    assert ran.rank(0).of("bye")[0]["status"] == 1


def test_sys_exit_is_no_exception() -> None:
    ran = run(ALONE + "sys.exit(3)\n", ranks=0, farewell="")
    assert ran.codes == [3]
    assert ran.rank(0).events("exception") == []
    assert ran.rank(0).of("bye")[0]["status"] == 3


def test_os_exit_leaves_what_was_recorded() -> None:
    ran = run(ALONE + "os._exit(0)\n", ranks=0, farewell="")
    assert ran.rank(0).of("bye") == []
    assert ran.rank(0).stages()[-1] == (1, 0, "after")


def test_single_process_is_a_world_of_its_own() -> None:
    ran = run(ALONE, ranks=0)
    hello = ran.rank(0).hello
    assert (hello["rank"], hello["world_size"], hello["backend"]) == (0, 1, "")
    # `start` again in the second step: what its gradients are made at.
    assert [stage for _, _, stage in ran.rank(0).stages("Net")] == [
        *["start", "local", "reduced", "final", "after"] * 2
    ]
    assert tuple(ran.losses) == losses_alone()


def test_a_front_that_goes_away_does_no_harm() -> None:
    def leave(connection, line):  # noqa: ANN001, ANN202
        if line["type"] == "mark":
            connection.socket.shutdown(2)
        return []

    ran = run(ALONE, ranks=0, answer=leave)
    assert ran.codes == [0], ran.err
    assert tuple(ran.losses) == losses_alone()


def test_no_front_and_no_library() -> None:
    for wrong in ({"socket": "/nonexistent/socket"}, {"library": "/nonexistent.so"}):
        ran = run(ALONE, ranks=0, **wrong)
        assert (ran.codes, ran.connections) == ([0], [])
        assert "gradcheck" not in ran.err[0]
        told = [p.read_text() for p in ran.directory.glob("seen-*-torch")]
        assert len(told) == 1 and "Error" in told[0]


WORKERS = """
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        w = torch.ones(4, requires_grad=True)
        (w * i).sum().backward()
        return w.grad
if __name__ == "__main__":
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=.1)
    for method in ("fork", "spawn"):
        loader = DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context=method)
        for values in loader:
            optimizer.zero_grad()
            net(values).sum().backward()
            optimizer.step()
    child = os.fork()
    if child == 0:
        optimizer.zero_grad()
        net(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        sys.exit(0)
    os.waitpid(child, 0)
"""


def test_workers_stay_silent() -> None:
    ran = run(WORKERS, ranks=0, farewell="")
    assert ran.codes == [0], ran.err
    assert len(ran.connections) == 1
    lines = ran.rank(0).lines
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    assert [e["step"] for e in ran.rank(0).events("optimizer_step")] == [0, 1, 2]
    assert ran.rank(0).open_stages() == []
    assert ran.seen.count("wrapped") == 1


# Two runs of one rank of a world that is known from the environment only.
def test_evidence_in_files(tmp_path: Path) -> None:
    script = PREAMBLE.replace("if size > 1:", "if False:") + ALONE
    env = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "1"}
    for restart in (0, 1):
        ran = run(
            script,
            ranks=0,
            preamble="",
            farewell="",
            env=env,
            socket="",
            evidence=str(tmp_path),
        )
        assert ran.codes == [0], ran.err
        [file] = tmp_path.glob(f"*/rank-1.{restart}.jsonl")
        lines = [json.loads(text) for text in file.read_text().splitlines()]
        assert lines[0]["world"] == file.parent.name
        assert (lines[0]["world_size"], lines[0]["restart"]) == (2, restart)
        assert (lines[-1]["type"], lines[-1]["lines"]) == ("bye", len(lines) - 1)
