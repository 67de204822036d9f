# SPDX-License-Identifier: Apache-2.0
"""gradcheck-rank end to end: real processes, real Gloo, the front played by native_front.py."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from native_front import (
    Arm,
    RankEvidence,
    Record,
    Zygote,
    differing,
    program,
    read_safetensors,
    run_arm,
)

TINY = "qwen3_tiny_untied"
FATAL = ("raise", "kill", "exit")
PHASES = ("construct", "forward", "backward", "optimizer")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote() as started:
        yield started


def fault(kind: str, **more: object) -> Record:
    return {"kind": kind, "rank": 1, "step": 0, **more}


def phases(evidence: RankEvidence) -> list[str]:
    return [event["phase"] for event in evidence.events("phase")]


def all_reduces(evidence: RankEvidence) -> int:
    return sum(event["op"] == "all_reduce" for event in evidence.events("collective"))


def without_run(evidence: RankEvidence) -> list[Record]:
    """Everything but what names the process and the run directory."""
    return [line for line in evidence.lines if line["type"] != "hello"]


def wait_until(done: Callable[[], bool]) -> bool:
    for _ in range(500):
        if done():
            return True
        time.sleep(0.01)
    return False


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_unwrapped_loss_leaves_every_gradient_local(zygote: Zygote, dtype: str) -> None:
    evidence = run_arm(zygote, 2, program(path="unwrapped", dtype=dtype))
    assert differing(evidence, "start") == 0
    assert differing(evidence, "local") == 310
    assert differing(evidence, "reduced") == 310
    assert all_reduces(evidence[0]) == 0
    assert [event["armed"] for event in evidence[0].events("backward")] == [False]
    assert len(evidence[0].events("inner_forward")) == 2


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_redirected_loss_reduces_every_gradient(zygote: Zygote, ranks: int, dtype: str) -> None:
    evidence = run_arm(zygote, ranks, program(path="redirected", dtype=dtype))
    assert differing(evidence, "local") == 310
    assert differing(evidence, "reduced") == 0
    assert differing(evidence, "after") == 0
    assert all_reduces(evidence[0]) == 1
    assert [event["armed"] for event in evidence[0].events("backward")] == [True]
    assert [event["armed"] for event in evidence[0].events("reducer")] == [False]
    assert evidence[0].events("inner_forward") == []


def test_wrapped_dense_loss_reduces_every_gradient(zygote: Zygote) -> None:
    evidence = run_arm(zygote, 2, program(path="wrapped", loss="dense"))
    assert differing(evidence, "local") == 310
    assert differing(evidence, "reduced") == 0
    forwards = evidence[0].events("wrapper_forward")
    assert [event["grad_mode"] for event in forwards] == [False, True]


def test_chunked_loss_cannot_take_logits_from_a_wrapper(zygote: Zygote) -> None:
    evidence = run_arm(zygote, 2, program(path="wrapped", loss="chunked", model=TINY))
    for one in evidence:
        assert "needs hidden states" in one.events("exception")[0]["text"]
        assert one.exit is not None and one.exit["status"] == 1


def test_arm_gives_the_same_evidence_first_and_last(zygote: Zygote) -> None:
    first = run_arm(zygote, 2, program(path="redirected"))
    run_arm(zygote, 2, program(path="unwrapped"))
    last = run_arm(zygote, 2, program(path="redirected"))
    assert [without_run(one) for one in first] == [without_run(one) for one in last]


def test_one_rank_without_wrapper_uses_no_collective(zygote: Zygote) -> None:
    evidence = run_arm(zygote, 1, program(path="direct", wrapper="none"))
    assert len(evidence[0].tensors("reduced")) == 310
    assert evidence[0].events("collective") == []
    assert evidence[0].digests("reduced") == evidence[0].digests("local")


def elements(directory: Path, rank: int, stage: str) -> dict[str, list[float]]:
    file = directory / "payload" / f"rank-{rank}.step-0.{stage}.safetensors"
    return {key: list(values) for key, values in read_safetensors(file).items()}


@pytest.mark.parametrize(("hook", "weight"), [("none", 0.5), ("sum", 1.0)])
def test_payload_shows_what_the_reduction_did(zygote: Zygote, hook: str, weight: float) -> None:
    names = ["policy/model.norm.weight", "policy/lm_head.weight"]
    wants = [
        {"micro": 0, "stage": stage, "names": names, "budget_bytes": 1 << 20}
        for stage in ("local", "reduced")
    ]
    what = program(model=TINY, options={"hook": hook})
    arm = Arm(zygote, 2, what, wants=wants)
    evidence = arm.finish()
    locals_ = [elements(arm.directory, rank, "local") for rank in range(2)]
    reduced = elements(arm.directory, 0, "reduced")
    arm.clean()
    assert [line["names"] for line in evidence[0].of("payload")] == [names, names]
    for name in names:
        pairs = zip(locals_[0][name], locals_[1][name], strict=True)
        assert reduced[name] == pytest.approx([weight * (a + b) for a, b in pairs], rel=1e-6)


def test_payload_stops_at_its_budget(zygote: Zygote) -> None:
    names = ["policy/model.norm.weight", "policy/lm_head.weight", "policy/nothing"]
    want = {"micro": 0, "stage": "reduced", "names": names, "budget_bytes": 100}
    evidence = run_arm(zygote, 2, program(model=TINY), wants=[want])
    payload = evidence[0].of("payload")[0]
    assert payload["names"] == names[:1]
    assert payload["truncated"] and payload["bytes"] == 64


def notes(evidence: RankEvidence) -> list[str]:
    return [event["text"] for event in evidence.events("note")]


def test_payload_that_cannot_be_written_is_no_exception_of_the_program(zygote: Zygote) -> None:
    names = ["policy/model.norm.weight"]
    want = {"micro": 0, "stage": "reduced", "names": names, "budget_bytes": 1 << 20}
    arm = Arm(zygote, 2, program(model=TINY), wants=[want])
    (arm.directory / "payload").rmdir()
    evidence = arm.finish()
    again = (arm.directory / "payload").exists()
    arm.clean()
    assert not again, "the front makes the run directory, nobody else"
    for one in evidence:
        payload = one.of("payload")[0]
        assert (payload["file"], payload["names"], payload["bytes"]) == ("", [], 0)
        assert payload["truncated"]
        assert "No such file or directory" in notes(one)[0]
        assert one.events("exception") == []
        assert one.of("bye")[0]["status"] == 0


@pytest.mark.parametrize(
    ("no_sync", "reductions", "differ"), [("none", 3, 0), ("all_but_last", 1, 0), ("all", 0, 25)]
)
def test_no_sync_decides_which_micro_steps_are_reduced(
    zygote: Zygote, no_sync: str, reductions: int, differ: int
) -> None:
    what = program(model=TINY, options={"no_sync": no_sync})
    evidence = run_arm(zygote, 2, what, micro_steps=3)
    assert all_reduces(evidence[0]) == reductions
    assert differing(evidence, "reduced") == differ
    assert sorted({line["micro"] for line in evidence[0].of("mark")}) == [0, 1, 2]


@pytest.mark.parametrize(
    "option", ["find_unused_parameters", "gradient_as_bucket_view", "static_graph"]
)
def test_wrapper_option_keeps_gradients_reduced(zygote: Zygote, option: str) -> None:
    what = program(model=TINY, options={option: True})
    evidence = run_arm(zygote, 2, what, steps=3)
    assert [differing(evidence, "local", step) for step in range(3)] == [25, 25, 25]
    assert [differing(evidence, "reduced", step) for step in range(3)] == [0, 0, 0]


def test_next_forward_is_recorded_once_a_step_from_the_second_on(zygote: Zygote) -> None:
    evidence = run_arm(zygote, 2, program(model=TINY), steps=3, micro_steps=2)
    marks = [m for m in evidence[0].of("mark") if m["stage"] == "next_forward"]
    assert [(m["step"], m["micro"], m["tensors"]) for m in marks] == [(1, 0, 1), (2, 0, 1)]


def test_same_data_gives_equal_batches_and_equal_locals(zygote: Zygote) -> None:
    evidence = run_arm(zygote, 2, program(model=TINY, path="unwrapped", data="same"))
    assert len({one.events("batch")[0]["digest"] for one in evidence}) == 1
    assert differing(evidence, "reduced") == 0


def test_zero_loss_scale_makes_gradients_zero_not_absent(zygote: Zygote) -> None:
    evidence = run_arm(zygote, 2, program(model=TINY, loss_scale=0))
    assert {line["state"] for line in evidence[0].tensors("reduced").values()} == {"zero"}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("kind", FATAL)
def test_rank_that_ends_early_leaves_what_it_had_said(
    zygote: Zygote, kind: str, phase: str
) -> None:
    evidence = run_arm(zygote, 2, program(model=TINY, fault=fault(kind, phase=phase)))
    ended = evidence[1]
    assert ended.exit is not None
    assert phases(ended)[-1] == phase
    assert (ended.exit["signal"] == 9) == (kind == "kill")
    assert (ended.exit["status"] == 1) == (kind == "raise")
    assert len(ended.of("bye")) == (1 if kind == "raise" else 0)
    raised = [event["text"] for event in ended.events("exception")]
    expected = [f"gradcheck fault: raised in {phase} on rank 1"] if kind == "raise" else []
    assert raised == expected


def test_survivor_names_the_lost_peer_in_its_exception(zygote: Zygote) -> None:
    evidence = run_arm(zygote, 2, program(model=TINY, fault=fault("kill", phase="backward")))
    exception = evidence[0].events("exception")[0]
    assert exception["error_type"] == "gloo::IoException"
    assert exception["phase"] == "backward"


def test_backward_fault_strikes_inside_the_backward(zygote: Zygote) -> None:
    evidence = run_arm(zygote, 2, program(model=TINY, fault=fault("raise", phase="backward")))
    assert len(evidence[1].events("backward")) == 1
    assert evidence[1].events("reducer") == []


def test_hang_names_its_phase_and_times_out_for_the_others(zygote: Zygote) -> None:
    arm = Arm(
        zygote,
        2,
        program(model=TINY, fault=fault("hang", phase="forward")),
        collective_timeout_s=1,
    )
    evidence = arm.finish(timeout=4)
    arm.clean()
    assert phases(evidence[1])[-1] == "forward"
    assert evidence[1].exit is not None and evidence[1].exit["signal"] == 9
    assert "Timed out" in evidence[0].events("exception")[0]["text"]


def test_skipped_hook_leaves_a_tensor_unrecorded(zygote: Zygote) -> None:
    name = "model.norm.weight"
    evidence = run_arm(zygote, 2, program(model=TINY, fault=fault("skip_hook", tensor=name)))
    assert name in evidence[0].tensors("local")
    assert name not in evidence[1].tensors("local")
    assert name in evidence[1].tensors("reduced")


def test_hook_of_a_tensor_that_is_not_there_is_refused(zygote: Zygote) -> None:
    what = program(model=TINY, fault=fault("skip_hook", tensor="model.norm.wieght"))
    evidence = run_arm(zygote, 2, what)
    # A rank that is still connecting when the other leaves only sees that one go.
    first, *_ = [
        e for one in evidence for e in one.events("exception") if e["phase"] == "construct"
    ]
    assert first["error_type"] == "std::invalid_argument"
    assert "did you mean 'model.norm.weight'?" in first["text"]
    assert [one.tensors("local") for one in evidence] == [{}, {}]


def test_skipped_mark_leaves_a_stage_open(zygote: Zygote) -> None:
    evidence = run_arm(zygote, 2, program(model=TINY, fault=fault("skip_mark", tensor="reduced")))
    assert "reduced" in [mark["stage"] for mark in evidence[0].of("mark")]
    assert "reduced" not in [mark["stage"] for mark in evidence[1].of("mark")]


def test_skipped_reduction_leaves_gradients_apart(zygote: Zygote) -> None:
    what = program(model=TINY, fault=fault("skip_reduction", rank=-1, step=1))
    evidence = run_arm(zygote, 2, what, steps=2)
    assert [differing(evidence, "reduced", step) for step in range(2)] == [0, 25]


def test_corrupt_reduction_gives_equal_but_wrong_gradients(zygote: Zygote) -> None:
    right = run_arm(zygote, 2, program(model=TINY))
    wrong = run_arm(zygote, 2, program(model=TINY, fault=fault("corrupt_reduction")))
    assert differing(wrong, "reduced") == 0
    assert differing([right[0], wrong[0]], "local") == 0
    assert differing([right[0], wrong[0]], "reduced") == 25


def hanging_arm(zygote: Zygote) -> Arm:
    arm = Arm(zygote, 2, program(model=TINY, fault=fault("hang", rank=-1, phase="construct")))
    assert wait_until(lambda: all("construct" in said(arm, rank) for rank in range(2)))
    return arm


def ended_by_itself(arm: Arm, status: int) -> str:
    """What a lone rank had written to stderr when it left with `status`."""
    packet = arm.zygote.receive()
    stderr = arm.stderr_path(0).read_text()
    arm.clean()
    assert (packet["status"], packet["signal"]) == (status, 0), stderr
    return stderr


def lone_arm(zygote: Zygote) -> Arm:
    return Arm(zygote, 1, program(model=TINY, wrapper="none", path="direct"))


def test_front_that_breaks_the_rules_is_not_the_programs_fault(zygote: Zygote) -> None:
    arm = lone_arm(zygote)
    arm.tell(0, {"type": "nonsense"})
    assert wait_until(lambda: "step_done" in said(arm, 0))
    assert "nonsense" in ended_by_itself(arm, 70)
    assert "exception" not in said(arm, 0)
    assert '"bye"' not in said(arm, 0)


def test_front_that_hangs_up_is_not_the_programs_fault(zygote: Zygote) -> None:
    arm = lone_arm(zygote)
    assert wait_until(lambda: "step_done" in said(arm, 0))
    arm.channels[0].close()
    assert "the front closed the channel" in ended_by_itself(arm, 70)


def said(arm: Arm, rank: int) -> str:
    arm.channels[rank].setblocking(False)
    with contextlib.suppress(BlockingIOError):
        arm.buffers[rank] += arm.channels[rank].recv(1 << 16)
    return arm.buffers[rank].decode()


def test_ranks_do_not_outlive_the_front() -> None:
    with Zygote() as zygote:
        arm = hanging_arm(zygote)
        assert all(is_alive(pid) for pid in arm.pids)
    assert not any(is_alive(pid) for pid in arm.pids)
    arm.clean()


def test_ranks_do_not_outlive_a_killed_zygote() -> None:
    zygote = Zygote()
    arm = hanging_arm(zygote)
    zygote.process.kill()
    zygote.process.wait()
    assert wait_until(lambda: not any(is_alive(pid) for pid in arm.pids))
    arm.clean()


def test_ranks_hold_no_descriptor_of_the_front_or_of_each_other(zygote: Zygote) -> None:
    arm = hanging_arm(zygote)
    open_files = [os.readlink(f"/proc/{arm.pids[1]}/fd/{n}") for n in (0, 1, 2, 3)]
    sockets = [f for f in Path(f"/proc/{arm.pids[1]}/fd").iterdir() if is_unix_socket(f)]
    for pid in arm.pids:
        os.kill(pid, 9)
    arm.collect_exits()
    assert open_files[0] == "/dev/null"
    assert open_files[1] == open_files[2] == str(arm.stderr_path(1))
    assert [f.name for f in sockets] == ["3"]
    arm.clean()


def is_unix_socket(link: Path) -> bool:
    target = os.readlink(link)
    inode = target.removeprefix("socket:[").removesuffix("]")
    return target.startswith("socket:") and inode in Path("/proc/net/unix").read_text()


def test_zygote_starts_no_thread(zygote: Zygote) -> None:
    run_arm(zygote, 2, program(model=TINY))
    assert len(list(Path(f"/proc/{zygote.process.pid}/task").iterdir())) == 1


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        ({"type": "fork", "ranks": 2}, "fork needs 4 descriptors, got 1"),
        ({"type": "fork", "ranks": 0}, "ranks must be 1 to 120"),
        ({"type": "exit", "rank": 0, "pid": 1, "status": 0, "signal": 0}, "only fork"),
        ({"type": "nonsense"}, "unknown packet type"),
    ],
)
def test_zygote_refuses_what_it_cannot_do_and_lives_on(
    zygote: Zygote, packet: Record, reason: str
) -> None:
    ours, theirs = socket.socketpair()
    zygote.send(packet, [theirs.fileno()])
    answer = zygote.receive()
    assert answer["type"] == "refused" and reason in answer["text"]
    theirs.close()
    assert ours.recv(1) == b""  # the descriptor was closed there too
    ours.close()
