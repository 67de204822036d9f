# SPDX-License-Identifier: Apache-2.0
"""Regressions of a hostile test: each was once a hang, a wrong name or a lost report."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Gradcheck

TINY = {
    "model": "qwen3_tiny_untied",
    "trainer": "kto",
    "loss": "chunked",
    "wrapper": {"kind": "ddp"},
    "path": "redirected",
}


def write(folder: Path, native: dict[str, Any], expect: dict[str, Any], **top: Any) -> Path:
    program = {"native": TINY | native}
    arms = [{"name": "only", "expect": expect}]
    data = {"name": "hostile", "description": "hostile", "program": program, "arms": arms} | top
    path = folder / "hostile.json"
    path.write_text(json.dumps(data))
    return path


def arm_of(result: Any) -> dict[str, Any]:
    return result.json()["scenarios"][0]["arms"][0]


def test_many_micro_steps_do_not_fill_both_sides_buffers(
    gradcheck: Gradcheck, tmp_path: Path
) -> None:
    native = {"model": "qwen3_0_6b"}
    path = write(tmp_path, native, {"outcome": "consistent"}, micro_steps=40)
    assert gradcheck("--scenario", path, timeout=60).code == 0


@pytest.mark.parametrize("kind", ["kill", "exit"])
@pytest.mark.parametrize("phase", ["rendezvous", "construct", "forward", "backward"])
@pytest.mark.parametrize("rank", [0, 1])
def test_the_rank_that_left_is_named_wherever_it_left(
    gradcheck: Gradcheck, tmp_path: Path, kind: str, phase: str, rank: int
) -> None:
    fault = {"kind": kind, "phase": phase, "rank": rank}
    path = write(tmp_path, {"fault": fault}, {"outcome": "error"}, timeout_s=16)
    arm = arm_of(gradcheck("--scenario", path, "--format", "json"))
    guilty = [f for f in arm["findings"] if f["severity"] == "error"]
    assert [(f["code"], f["ranks"]) for f in guilty] == [("GC802", [rank])], arm["headline"]


@pytest.mark.parametrize("phase", ["construct", "forward", "backward"])
@pytest.mark.parametrize("rank", [0, 1])
def test_the_rank_that_hangs_is_named(
    gradcheck: Gradcheck, tmp_path: Path, phase: str, rank: int
) -> None:
    fault = {"kind": "hang", "phase": phase, "rank": rank}
    path = write(tmp_path, {"fault": fault}, {"outcome": "error"}, timeout_s=6)
    arm = arm_of(gradcheck("--scenario", path, "--format", "json"))
    guilty = [f for f in arm["findings"] if f["severity"] == "error"]
    assert [(f["code"], f["ranks"]) for f in guilty] == [("GC803", [rank])], arm["headline"]


def test_not_a_number_everywhere_is_not_called_duplicate_data(
    gradcheck: Gradcheck, tmp_path: Path
) -> None:
    path = write(tmp_path, {"loss_scale": 1e39}, {"outcome": "inconsistent", "codes": ["GC701"]})
    arm = arm_of(gradcheck("--scenario", path, "--format", "json"))
    assert arm["verdict"] == "pass", arm["headline"]
    assert "GC601" not in {f["code"] for f in arm["findings"]}


def test_a_plan_that_leaves_ranks_out_proves_nothing(gradcheck: Gradcheck, tmp_path: Path) -> None:
    plan = [{"group": [0]}]
    path = write(tmp_path, {"path": "unwrapped"}, {"outcome": "consistent"}, plan=plan)
    assert gradcheck("--scenario", path).code == 3


def test_a_broken_setup_meets_no_expectation(gradcheck: Gradcheck, tmp_path: Path) -> None:
    path = write(tmp_path, {}, {"outcome": "error"})
    for binary in ("/bin/true", "/nonexistent", "/tmp"):
        assert gradcheck("--scenario", path, GRADCHECK_RANK=binary).code == 3


def test_a_reader_that_goes_away_does_not_cost_the_files(
    gradcheck: Gradcheck, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    command = f"{gradcheck.binary} --filter 'kto*' --report json={report} | head -n 1"
    subprocess.run(["bash", "-c", command], stdout=subprocess.DEVNULL, check=False)
    assert json.loads(report.read_text())["schema"] == "report-1"


def test_a_closed_standard_output_is_a_lost_report_and_nothing_else(gradcheck: Gradcheck) -> None:
    command = f"{gradcheck.binary} --scenario kto_liger_single >&-"
    done = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert "stdout" in done.stderr


def test_a_symlink_loop_among_scenarios_is_one_clear_line(
    gradcheck: Gradcheck, tmp_path: Path
) -> None:
    (tmp_path / "loop.json").symlink_to("loop.json")
    result = gradcheck("--scenario-dir", tmp_path, "--all")
    assert (result.code, len(result.err.splitlines())) == (2, 1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_zygote_that_dies_or_stops_ends_the_arm(
    gradcheck: Gradcheck, tmp_path: Path, number: signal.Signals
) -> None:
    fault = {"kind": "hang", "phase": "forward", "rank": 1}
    path = write(tmp_path, {"fault": fault}, {"outcome": "error"}, timeout_s=4)
    process = subprocess.Popen(
        [gradcheck.binary, "--scenario", path],
        env=os.environ | {"TMPDIR": str(gradcheck.folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 30
    while not list(gradcheck.folder.glob("gradcheck-*/store*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(int(children.read_text().split()[0]), number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 3
    assert out.startswith("error")
    assert list(gradcheck.folder.iterdir()) == []
