# SPDX-License-Identifier: Apache-2.0
"""Every shipped scenario comes out as it says, at every world size, and the report is whole."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Gradcheck

SCENARIOS = sorted(path.stem for path in (ROOT / "scenarios").glob("*.json"))


def run(
    gradcheck: Gradcheck, *arguments: str, code: int = 0, timeout: float = 120
) -> dict[str, Any]:
    """Runs with a JSON report."""
    result = gradcheck(*arguments, "--format", "json", timeout=timeout)
    assert result.code == code, result.out + result.err
    return result.json()


def arms_of(report: dict[str, Any]) -> dict[str, Any]:
    return {arm["name"]: arm for arm in report["scenarios"][0]["arms"]}


def codes(arm: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in arm["findings"]}


def shipped(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "scenarios" / f"{name}.json").read_text("utf-8"))


# Their arms come out the same on 3 and 4 ranks as on 2.
WIDE = [name for name in SCENARIOS if "wide" in shipped(name)["tags"]]


def assert_all_pass(report: dict[str, Any], names: list[str]) -> None:
    """Every one of `names` ran, in every combination of its matrix, and passed."""
    assert {scenario["name"].partition("[")[0] for scenario in report["scenarios"]} == set(names)
    assert report["summary"]["pass"] == len(report["scenarios"])


@pytest.mark.parametrize("name", SCENARIOS)
def test_shipped_scenario_passes(gradcheck: Gradcheck, name: str) -> None:
    assert_all_pass(run(gradcheck, "--scenario", name), [name])


def run_all_of(
    gradcheck: Gradcheck, folder: Path, names: list[str], *options: str
) -> dict[str, Any]:
    """The native ones: those of Python jobs take minutes and have a file of their own."""
    for name in names:
        shutil.copy(ROOT / "scenarios" / f"{name}.json", folder)
    return run(gradcheck, "--scenario-dir", str(folder), "--all", *options, timeout=900)


def test_all_of_them_in_one_run(gradcheck: Gradcheck, tmp_path: Path) -> None:
    report = run_all_of(gradcheck, tmp_path, SCENARIOS)
    assert_all_pass(report, SCENARIOS)
    names = [scenario["name"].partition("[")[0] for scenario in report["scenarios"]]
    assert list(dict.fromkeys(names)) == SCENARIOS


@pytest.mark.parametrize("ranks", [3, 4])
def test_wide_ones_come_out_the_same_at_more_ranks(
    gradcheck: Gradcheck, tmp_path: Path, ranks: int
) -> None:
    """Each at 3 or at 4 ranks; with GRADCHECK_FULL each at both."""
    full = "GRADCHECK_FULL" in os.environ
    names = WIDE if full else WIDE[ranks % 2 :: 2]
    assert_all_pass(run_all_of(gradcheck, tmp_path, names, "--ranks", str(ranks)), names)


def test_what_runs_on_several_ranks_is_wide() -> None:
    alone = [name for name in SCENARIOS if shipped(name).get("ranks") == 1]
    assert sorted(WIDE + alone) == SCENARIOS


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("ranks", range(2, 9))
@pytest.mark.parametrize("seed", [1, 7])
def test_bypass_is_310_of_310_and_redirection_0(
    gradcheck: Gradcheck, ranks: int, dtype: str, seed: int
) -> None:
    options = ["--ranks", str(ranks), "--dtype", dtype, "--seed", str(seed)]
    arms = arms_of(run(gradcheck, "--scenario", "kto_liger_ddp", *options))
    unwrapped, redirected = arms["unwrapped"], arms["redirected"]
    assert unwrapped["totals"]["differed"] == 310
    assert unwrapped["totals"]["max_abs"] > 0
    assert unwrapped["totals"]["max_abs_exact"]
    assert {"GC101", "GC201"} <= codes(unwrapped)
    assert unwrapped["causes"][0]["cause"] == "bypass"
    assert unwrapped["causes"][0]["confidence"] == "certain"
    totals = redirected["totals"]
    assert (totals["inventory"], totals["compared"]) == (310, 310)
    assert (totals["differed"], totals["wrong"], totals["max_abs"]) == (0, 0, 0)
    assert 0 < totals["bound_used"] <= 1


def test_one_rank_says_that_agreement_was_not_tested(gradcheck: Gradcheck) -> None:
    arms = arms_of(run(gradcheck, "--scenario", "kto_liger_ddp", "--ranks", "1"))
    assert arms["unwrapped"]["verdict"] == "skip"
    assert arms["redirected"]["verdict"] == "pass"
    assert any("agreement" in text for text in arms["redirected"]["scope"]["not_checked"])


def test_single_process_uses_no_collective(gradcheck: Gradcheck) -> None:
    arm = arms_of(run(gradcheck, "--scenario", "kto_liger_single"))["direct"]
    assert arm["events"]["collectives"] == 0


def test_more_steps_are_judged_step_by_step(gradcheck: Gradcheck) -> None:
    arms = arms_of(run(gradcheck, "--scenario", "kto_liger_ddp", "--steps", "3"))
    steps = arms["redirected"]["steps"]
    assert [s["step"] for s in steps] == [0, 1, 2]
    assert all(s["compared"] == 310 and s["differed"] == 0 for s in steps)


def test_an_arms_evidence_is_the_same_run_first_or_last(gradcheck: Gradcheck) -> None:
    alone = arms_of(run(gradcheck, "--scenario", "kto_liger_ddp", "--arm", "redirected", "-v"))
    after = arms_of(run(gradcheck, "--scenario", "kto_liger_ddp", "-v"))
    for arm in (alone["redirected"], after["redirected"]):
        arm["duration_s"] = 0
    assert alone["redirected"] == after["redirected"]


def test_same_input_same_bytes(gradcheck: Gradcheck) -> None:
    arguments = ["--scenario", "kto_liger_ddp", "--format", "json"]
    first = gradcheck(*arguments, SOURCE_DATE_EPOCH="1700000000")
    second = gradcheck(*arguments, SOURCE_DATE_EPOCH="1700000000")
    assert first.out == second.out
    run_info = first.json()["run"]
    assert (run_info["started_at"], run_info["host"]) == ("2023-11-14T22:13:20Z", "")


@pytest.mark.parametrize(
    ("name", "code", "end", "phase"),
    [
        ("rank_dies", "GC802", "signalled", "backward"),
        ("rank_hangs", "GC803", "deadline", "forward"),
        ("rank_exits_early", "GC802", "exited", "optimizer"),
        ("rank_raises", "GC801", "bye", "forward"),
    ],
)
def test_faults_name_rank_phase_and_reason(
    gradcheck: Gradcheck, name: str, code: str, end: str, phase: str
) -> None:
    arm = next(iter(arms_of(run(gradcheck, "--scenario", name)).values()))
    guilty = [f for f in arm["findings"] if f["code"] == code and f["severity"] == "error"]
    assert [f["ranks"] for f in guilty] == [[1]]
    assert len(arm["ranks"]) == 2
    row = arm["ranks"][1]
    assert (row["end"], row["phase"]) == (end, phase)
    assert row["last_record"]
    assert "rank 1" in arm["headline"]


def test_no_process_is_left_behind(gradcheck: Gradcheck) -> None:
    def survivors() -> list[str]:
        found = []
        for entry in Path("/proc").iterdir():
            try:
                command = (entry / "cmdline").read_bytes()
                environment = (entry / "environ").read_bytes()
            except (OSError, ValueError):
                continue
            if b"gradcheck-rank" in command and str(gradcheck.folder).encode() in environment:
                found.append(entry.name)
        return found

    for name in ("rank_dies", "rank_hangs", "rank_exits_early", "rank_raises"):
        run(gradcheck, "--scenario", name)
    assert survivors() == []
