# SPDX-License-Identifier: Apache-2.0
"""`gradcheck exec` on jobs that nobody edited: the answer, the exit code, what is left behind."""

import json
import os
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Gradcheck, Result

JOBS = ROOT / "tests/python/jobs"


def python() -> str:
    """The interpreter with torch: that of the private environment, which runs these tests."""
    return sys.executable


def job(
    gradcheck: Gradcheck, script: str, *arguments: str, options: tuple[str, ...] = ()
) -> Result:
    command = [python(), str(JOBS / script), *arguments]
    return gradcheck("exec", "-n", "2", *options, "--", *command, timeout=120)


# --- commands that are no training job


def test_what_is_no_python_is_named(gradcheck: Gradcheck) -> None:
    result = gradcheck("exec", "-n", "2", "--", "sh", "-c", "echo hello")
    assert result.code == 3
    lines = result.out.splitlines()
    assert sorted(lines[:2]) == ["[0] hello", "[1] hello"]
    assert lines[2].startswith("error sh")
    assert "no Python process loaded the agent" in result.out


def test_python_without_torch_is_named(gradcheck: Gradcheck) -> None:
    result = gradcheck("exec", "--", python(), "-c", "pass")
    assert result.code == 3
    assert "nothing imported torch" in result.out


def test_isolated_python_is_named(gradcheck: Gradcheck) -> None:
    result = gradcheck("exec", "--", python(), "-I", "-c", "pass")
    assert result.code == 3
    assert "-I, -E or -S" in result.out


def test_a_job_that_fails_first_is_raised_with_its_last_words(gradcheck: Gradcheck) -> None:
    result = gradcheck("exec", "-n", "2", "--", python(), "-c", "raise ValueError('no data')")
    assert result.code == 3
    assert "raised" in result.out
    assert "ValueError: no data" in result.out


def test_a_job_that_is_killed_first_is_an_error(gradcheck: Gradcheck) -> None:
    result = gradcheck("exec", "-n", "2", "--", "sh", "-c", "kill -9 $$")
    assert result.code == 3
    assert "GC802" in result.out
    assert "SIGKILL" in result.out


def test_the_whole_job_has_a_deadline_if_asked(gradcheck: Gradcheck) -> None:
    result = gradcheck("exec", "-n", "2", "--timeout", "1", "--", "sleep", "100", timeout=30)
    assert result.code == 3
    assert "deadline" in result.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-n", "2", "python", "train.py"], "write -- before the command"),
        (["-n", "2", "--"], "there is no command behind --"),
        (["-n", "0", "--", "true"], "--ranks"),
        (["--every", "0", "--", "true"], "--every"),
        (["--stop-after-steps", "--", "true"], "--stop-after-steps needs --steps"),
        (["--keep", "a", "--evidence", "b", "--", "true"], "give one of --keep and --evidence"),
        (["--python", "/no/python", "--", "true"], "there is no such file"),
        (["--plan", "/no/plan.json", "--", "true"], "there is no such file"),
    ],
)
def test_bad_options_start_nothing(
    gradcheck: Gradcheck, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    result = gradcheck("exec", *arguments)
    assert result.code == 2
    assert sentence in result.err
    assert result.out == ""


def test_a_command_that_does_not_exist_is_one_sentence(gradcheck: Gradcheck) -> None:
    result = gradcheck("exec", "--", "no-such-command")
    assert result.code == 3
    assert result.err == "gradcheck: cannot start no-such-command: No such file or directory\n"


# --- training jobs


def test_a_bypass_is_named_with_its_lines(gradcheck: Gradcheck) -> None:
    result = job(gradcheck, "ddp.py", "--path", "module")
    assert result.code == 1, result.out
    report = [line for line in result.out.splitlines() if not line.startswith("[")]
    assert report[0].startswith("fail  ddp.py   2 ranks, gloo   torch 2.13.0")
    assert "not reduced" in result.out
    assert "bypass (certain)" in result.out
    assert "ddp.py:" in result.out


def test_a_wrapped_job_passes_and_prints_the_same_losses(gradcheck: Gradcheck) -> None:
    result = job(gradcheck, "ddp.py")
    assert result.code == 0, result.out
    losses = [line[4:] for line in result.out.splitlines() if line.startswith("[0] step ")]
    assert len(losses) >= 2
    bare = bare_losses("ddp.py")
    assert losses == bare


def bare_losses(script: str) -> list[str]:
    """What rank 0 prints without the agent."""
    import socket
    import subprocess

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = []
    for rank in range(2):
        env = os.environ | {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": "1",
        }
        ranks.append(
            subprocess.Popen(
                [python(), str(JOBS / script)], env=env, stdout=subprocess.PIPE, text=True
            )
        )
    outputs = [rank.communicate(timeout=60)[0] for rank in ranks]
    return [line for line in outputs[0].splitlines() if line.startswith("step ")]


def test_a_report_for_machines_owns_stdout(gradcheck: Gradcheck) -> None:
    result = job(gradcheck, "ddp.py", options=("--format", "json"))
    report = result.json()
    arm = report["scenarios"][0]["arms"][0]
    assert arm["probe"] == "python"
    assert arm["outcome"] == "consistent"
    assert "[0] step" in result.err


def test_kept_evidence_is_judged_alike(gradcheck: Gradcheck, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    ran = job(gradcheck, "ddp.py", "--path", "module", options=("--keep", str(kept)))
    again = gradcheck("judge", kept, "--format", "json")
    assert ran.code == again.code == 1
    arm = again.json()["scenarios"][0]["arms"][0]
    assert arm["totals"]["differed"] == arm["totals"]["inventory"] > 0
    assert arm["totals"]["max_abs_exact"]
    assert next(claim["cause"] for claim in arm["causes"]) == "bypass"


def test_exact_keeps_local_gradients_for_the_audit(gradcheck: Gradcheck) -> None:
    """Ranks wait for the front at the end of a checked step, so that nothing is dropped by then."""
    result = job(gradcheck, "ddp.py", "--path", "module", options=("--exact", "--format", "json"))
    arm = result.json()["scenarios"][0]["arms"][0]
    assert result.code == 1
    assert arm["tensors"]
    assert all(row["max_abs_exact"] for row in arm["tensors"])
    assert not [note for note in arm["notes"] if "sync_lost" in note]


def test_ranks_may_write_their_evidence_to_files(gradcheck: Gradcheck, tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    result = job(gradcheck, "ddp.py", options=("--evidence", str(folder)))
    assert result.code == 0, result.out
    files = sorted(path.name for path in folder.rglob("*.jsonl"))
    assert files == ["rank-0.0.jsonl", "rank-1.0.jsonl"]
    assert gradcheck("judge", folder).code == 0


COARSE = ("--model", "bf16", "--softmax", "as_it_is")


def test_log_probs_fail_a_job_whose_gradients_are_right(
    gradcheck: Gradcheck, tmp_path: Path
) -> None:
    """… with the line that made them, also when what was kept is judged again."""
    kept = tmp_path / "kept"
    ran = job(gradcheck, "log_probs.py", *COARSE, options=("--keep", str(kept)))
    again = gradcheck("judge", kept)
    assert ran.code == again.code == 1, ran.out
    for result in (ran, again):
        assert "GC502" in result.out
        assert "bf16_log_softmax" in result.out
        assert "log_probs.py:" in result.out
    for path in kept.glob("*/payload/logp-rank-1.step-0.*"):
        path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    forged = gradcheck("judge", kept)
    assert forged.code == 3
    assert "does not hold the arrays that were recorded" in forged.out


def test_log_probs_lie_beside_evidence_that_ranks_write(
    gradcheck: Gradcheck, tmp_path: Path
) -> None:
    folder = tmp_path / "evidence"
    result = job(gradcheck, "log_probs.py", options=("--evidence", str(folder)))
    assert result.code == 0, result.out
    assert "log-probs 'train' of step 0: old and new are bitwise equal" in result.out
    assert len(list(folder.glob("*/payload/logp-rank-*"))) == 4


def test_evidence_of_two_runs_is_not_mixed(gradcheck: Gradcheck, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "old").write_text("")
    result = job(gradcheck, "ddp.py", options=("--keep", str(tmp_path / "full")))
    assert result.code == 2
    assert "is not empty" in result.err


def test_a_plan_overrides_what_the_wrapper_says(gradcheck: Gradcheck, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps([{"reduction": "sum"}]))
    result = job(gradcheck, "ddp.py", options=("--plan", str(plan)))
    assert result.code == 1, result.out
    assert "GC204" in result.out


def test_checking_may_end_the_job(gradcheck: Gradcheck) -> None:
    result = job(gradcheck, "ddp.py", options=("--steps", "1", "--stop-after-steps"))
    assert result.code == 0, result.out
    assert "1 step," in result.out


def test_the_plan_of_a_run_is_a_file_for_the_next(gradcheck: Gradcheck, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert job(gradcheck, "ddp.py", options=("--keep", str(kept))).code == 0
    table = gradcheck("plan", kept)
    assert "head.bias" in table.out and "wrapper" in table.out
    plan = tmp_path / "plan.json"
    plan.write_text(gradcheck("plan", kept, "--format", "json").out)
    again = gradcheck("judge", kept, "--plan", plan, "--format", "json")
    assert again.code == 0
    lines = again.json()["scenarios"][0]["arms"][0]["plan"]
    assert {line["source"] for line in lines} == {"declared"}
